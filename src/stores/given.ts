import { HoldfastError } from "../model/errors.ts";
import { givenInvalid } from "../model/shape.ts";
import { isIsolation } from "../sql/isolation.ts";
import type { Isolation } from "../sql/isolation.ts";
import type { Database, WaitOptions } from "../sql/database.ts";

/** What a call that only waits may be told. */
export const waitNames: readonly (keyof WaitOptions)[] = ["signal", "timeout"];

/** The database of a facade: whoever forgets to await it would learn so late and in other words. @throws HoldfastError `OPTION_INVALID` */
export function givenDatabase(given: Database): Database {
  const { write, read, then } = Object(given) as Partial<Database> & {
    readonly then?: unknown;
  };
  if (typeof write === "function" && typeof read === "function") return given;
  throw typeof then === "function"
    ? new HoldfastError(
        "OPTION_INVALID",
        "The database is still being opened. Await it first: `const database = await openSqlite(…)`.",
        { option: "database" },
      )
    : givenInvalid("database", "one that was opened", given);
}

/** @throws HoldfastError `OPTION_INVALID` */
export function givenIsolation(given: Isolation | undefined): Isolation | undefined {
  if (given === undefined || isIsolation(given)) return given;
  throw givenInvalid("isolation", '"serializable" or "readCommitted"', given);
}
