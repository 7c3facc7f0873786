import { describe, expect, test } from "vitest";
import { isHoldfastError } from "../../../src/model/errors.ts";
import type { Database } from "../../../src/sql/database.ts";
import type { Isolation } from "../../../src/sql/isolation.ts";
import { withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { preparedReads, stands } from "./reads-in-writes.ts";
import type { PreparedRead } from "./reads-in-writes.ts";

/** Where a prepared read may stand: the same on every database. */
export function readsInWritesSuite(backend: Backend): void {
  const onReads =
    (body: (database: Database, reads: readonly PreparedRead[]) => Promise<void>) => () =>
      withDatabase(backend, async (database) => body(database, await preparedReads(database)));
  describe("a prepared read of every page", () => {
    test(
      "answers in a read as when it is called",
      onReads(async (database, reads) => {
        for (const { name, part, call } of reads)
          expect([name, await outcome(database.read(name, part))]).toEqual([
            name,
            await outcome(call()),
          ]);
      }),
    );

    test(
      "is refused in a write that is readCommitted, or answers there under a lock or for a reason",
      onReads(async (database, reads) => {
        const found = await refusalsOf(database, reads, "readCommitted");
        expect(found).toEqual(
          Object.fromEntries(
            Object.entries(stands).map(([name, { kind }]) => [name, kind === "refused"]),
          ),
        );
      }),
    );

    test(
      "is refused in a write that is serializable, also when the body would catch it",
      onReads(async (database, reads) => {
        const found = await refusalsOf(database, reads, "serializable");
        expect(found).toEqual(Object.fromEntries(reads.map(({ name }) => [name, true])));
      }),
    );

    test(
      "that reads many things names itself, the write and the remedy",
      onReads(async (database, reads) => {
        const list = reads.find(({ name }) => name === "sessions.list");
        const refusal = await database
          .write("tidy up", list?.part ?? fail, { isolation: "readCommitted" })
          .catch((error: unknown) => error);
        expect(refusal).toMatchObject({
          code: "ISOLATION_MISMATCH",
          details: { operation: "listSessions", call: "tidy up", isolation: "readCommitted" },
          message: expect.stringContaining("`sessions.lock`"),
        });
      }),
    );
  });
}

const mismatch = "ISOLATION_MISMATCH";

function fail(): never {
  throw new Error("It is a read.");
}

/** Which of the reads a write of that isolation refuses to run. */
async function refusalsOf(
  database: Database,
  reads: readonly PreparedRead[],
  isolation: Isolation,
): Promise<Readonly<Record<string, boolean>>> {
  const found: [string, boolean][] = [];
  for (const { name, part } of reads) {
    const caught = function* () {
      try {
        yield* part();
      } catch {
        // The write is refused all the same.
      }
    };
    found.push([name, (await outcome(database.write(name, caught, { isolation }))) === mismatch]);
  }
  return Object.fromEntries(found);
}

/** An answer, or the code of a refusal. */
async function outcome(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    if (isHoldfastError(error)) return error.code;
    throw error;
  }
}
