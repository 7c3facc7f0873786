import { HoldfastError } from "../model/errors.ts";
import { givenInvalid } from "../model/shape.ts";
import { isIsolation } from "../sql/isolation.ts";
import type { Isolation } from "../sql/isolation.ts";
import type { Database, WaitOptions } from "../sql/database.ts";

/** The options of a call that only waits. */
export const waitNames: readonly (keyof WaitOptions)[] = ["signal", "timeout"];

/**
 * Checks the database given to a facade. A caller that forgot to await it would otherwise see a
 * later and less clear error.
 * @throws HoldfastError `OPTION_INVALID`
 */
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
    : givenInvalid("database", "an open database", given);
}

/** @throws HoldfastError `OPTION_INVALID` */
export function givenIsolation(given: Isolation | undefined): Isolation | undefined {
  if (given === undefined || isIsolation(given)) return given;
  throw givenInvalid("isolation", '"serializable" or "readCommitted"', given);
}
