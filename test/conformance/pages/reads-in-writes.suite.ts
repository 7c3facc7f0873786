import { describe, expect, test } from "vitest";
import { artifacts } from "../../../src/blobs.ts";
import { isHoldfastError } from "../../../src/model/errors.ts";
import type { Database } from "../../../src/sql/database.ts";
import type { Isolation } from "../../../src/sql/isolation.ts";
import type { Tx } from "../../../src/sql/operation.ts";
import { schedules } from "../../../src/triggers.ts";
import { withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { bytesOf } from "../blob/owners.ts";
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

/** Bodies that put what they have found missing: each must see what another has put before. */
export function missingNamesSuite(backend: Backend): void {
  const callers = 20;

  describe("a prepared read of a name that is missing", () => {
    test("keeps it free: of many callers that count up an artifact none is lost", () =>
      withDatabase(backend, async (database) => {
        const page = artifacts(database);
        for (const name of ["apples", "pears", "plums", "cherries"]) {
          const puts = Array.from({ length: callers }, (_, count) =>
            page.put.prepare("space", name, bytesOf(String(count + 1))),
          );
          const get = page.get.prepare("space", name);
          const raise = function* (): Tx<void> {
            const found = yield* get();
            const count = found === undefined ? 0 : Number(new TextDecoder().decode(found.content));
            yield* puts[count]?.() ?? fail();
          };
          await Promise.all(
            puts.map(() => database.write("raise", raise, { isolation: "readCommitted" })),
          );
          const { content } = await page.load("space", name);
          expect(content).toEqual(bytesOf(String(callers)));
        }
      }));

    test("keeps it free: of many callers that put a schedule one does", () =>
      withDatabase(backend, async (database) => {
        const page = schedules(database);
        for (const name of ["daily", "weekly", "monthly", "yearly"]) {
          const get = page.get.prepare("report", name);
          const puts = Array.from({ length: callers }, (_, hours) =>
            page.put.prepare("report", name, { every: `${hours + 1} hours` }),
          );
          let putCount = 0;
          const putIfMissing = function* (put: () => Tx<unknown>): Tx<boolean> {
            const isMissing = (yield* get()) === undefined;
            if (isMissing) yield* put();
            return isMissing;
          };
          await Promise.all(
            puts.map(async (put) => {
              const isPut = await database.write("put if missing", () => putIfMissing(put), {
                isolation: "readCommitted",
              });
              if (isPut) putCount += 1;
            }),
          );
          expect(putCount).toBe(1);
          expect(await page.get("report", name)).toMatchObject({ revision: 1 });
        }
      }));

    test("leaves no trace of it, whether or not anything is put", () =>
      withDatabase(backend, async (database) => {
        const look = (name: string, part: () => Tx<unknown>): Promise<unknown> =>
          database.write(name, part, { isolation: "readCommitted" });
        const artifact = artifacts(database).get.prepare("space", "none");
        expect(await look("artifact", artifact)).toBeUndefined();
        const schedule = schedules(database).get.prepare("report", "none");
        expect(await look("schedule", schedule)).toBeUndefined();
        expect(await artifacts(database).list("space")).toMatchObject({ items: [] });
        expect(await schedules(database).list("report")).toMatchObject({ items: [] });
      }));
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
