import { describe, expect, test } from "vitest";
import {
  integer,
  lockRow,
  strict,
  text,
  operation,
  row,
  run,
  type Tx,
  sql,
  type Database,
  type WriteOptions,
} from "../../../src/kernel.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";

/** What bodies of users may count on, and which operations may be a part of which calls. */
export function isolationSuite(backend: Backend): void {
  const onCounters = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, async (database) => {
      await database.write("tables", createCounters);
      await body(database);
    });
  readThenWriteTests(onCounters);
  composingTests(onCounters);
  optionTests(onCounters);
}

type OnCounters = (body: (database: Database) => Promise<void>) => () => Promise<void>;

function readThenWriteTests(onCounters: OnCounters): void {
  describe("a body that selects and then updates", () => {
    test(
      "loses nothing when 20 callers with keys of their own run it at once",
      onCounters(async (database) => {
        await each(20, async (caller) => {
          for (let turn = 0; turn < 5; turn += 1) await database.write(raiseBy, { caller, by: 1 });
        });
        expect(await valueOf(database, "a")).toBe(100);
      }),
    );

    test(
      "loses nothing without an operation either, nor do 50 callers of one row reject",
      onCounters(async (database) => {
        await each(50, () => database.write("raise", () => raised("a", 1)));
        expect(await valueOf(database, "a")).toBe(50);
      }),
    );

    test(
      "loses nothing under readCommitted when it locks the row",
      onCounters(async (database) => {
        await each(50, () =>
          database.write("raise", () => raisedLocked("a", 1), {
            isolation: "readCommitted",
          }),
        );
        await each(20, (caller) => database.write(raiseLocked, { caller, by: 1 }));
        expect(await valueOf(database, "a")).toBe(70);
      }),
    );

    test(
      "cannot break what it holds together by two rows, each of which another changes",
      onCounters(async (database) => {
        const first = ["on call", "also on call"];
        await database.write("both", function* () {
          for (const id of first) yield* raised(id, 1);
        });
        // One of the two has to stay; both ask before they go.
        const left = await Promise.all(
          first.map((id) =>
            database.write(`leave ${id}`, function* () {
              const there = yield* row<{ n: number }>(
                sql`SELECT count(*) AS n FROM app_counter WHERE value = 1`,
              );
              if (there?.n !== 2) return false;
              yield* run(sql`UPDATE app_counter SET value = 0 WHERE id = ${id}`);
              return true;
            }),
          ),
        );
        expect(left.filter((isGone) => isGone)).toHaveLength(1);
      }),
    );
  });
}

function composingTests(onCounters: OnCounters): void {
  describe("an operation inside another call", () => {
    test(
      "that is readCommitted is refused where the call is serializable, and nothing was done",
      onCounters(async (database) => {
        const error = await rejection(
          database.write("outer", function* () {
            yield* raised("a", 1);
            return yield* raiseLocked({ caller: 1, by: 1 });
          }),
        );
        expect(error).toMatchObject({
          code: "ISOLATION_MISMATCH",
          retryable: false,
          details: {
            operation: "raiseLocked",
            call: "outer",
            isolation: "serializable",
          },
        });
        expect(error.message).toContain('"raiseLocked"');
        expect(error.message).toContain('{ isolation: "readCommitted" }');
        expect(error.message).toContain("lockRow");
        expect(await valueOf(database, "a")).toBe(undefined);
      }),
    );

    test(
      "that is readCommitted is refused however deep it lies, also when the body would catch it",
      onCounters(async (database) => {
        const error = await rejection(database.write(nesting, { caller: 1, by: 1 }));
        expect(error).toMatchObject({
          code: "ISOLATION_MISMATCH",
          details: { operation: "raiseLocked", call: "nesting" },
        });
        expect(await valueOf(database, "a")).toBe(undefined);
      }),
    );

    test(
      "runs where the outermost call is readCommitted, whatever stands between",
      onCounters(async (database) => {
        const options: WriteOptions = { isolation: "readCommitted" };
        await database.write(nesting, { caller: 1, by: 1 }, options);
        await database.write("outer", () => raiseBy({ caller: 1, by: 1 }), options);
        expect(await valueOf(database, "a")).toBe(2);
      }),
    );

    test(
      "that says serializable itself is refused where the call is readCommitted",
      onCounters(async (database) => {
        const error = await rejection(
          database.write(
            "outer",
            function* () {
              yield* raised("a", 1);
              yield* raiseAlone({ caller: 1, by: 1 });
            },
            { isolation: "readCommitted" },
          ),
        );
        expect(error).toMatchObject({
          code: "ISOLATION_MISMATCH",
          details: { operation: "raiseAlone", isolation: "readCommitted" },
        });
        expect(await valueOf(database, "a")).toBe(undefined);
      }),
    );

    test(
      "that is snapshotSafe runs in a serializable call, with what it composes and nothing beyond",
      onCounters(async (database) => {
        await database.write("safe", () => safely({ caller: 1, by: 1 }));
        expect(await valueOf(database, "a")).toBe(1);
        for (const by of [1, 0]) {
          const error = await rejection(
            database.write("safe and more", function* () {
              try {
                yield* safely({ caller: 1, by });
              } catch {
                // It is over all the same.
              }
              yield* raiseLocked({ caller: 1, by: 1 });
            }),
          );
          expect(error).toMatchObject({
            code: "ISOLATION_MISMATCH",
            details: { operation: "raiseLocked", call: "safe and more" },
          });
        }
        expect(await valueOf(database, "a")).toBe(1);
      }),
    );
  });
}

function optionTests(onCounters: OnCounters): void {
  describe("the isolation of a call", () => {
    test(
      "can be set for an operation, as far as the operation bears it",
      onCounters(async (database) => {
        const input = { caller: 1, by: 1 };
        await database.write(raiseBy, input, { isolation: "readCommitted" });
        await database.write(raiseBy, input, { isolation: "serializable" });
        await database.write(safely, input, { isolation: "serializable" });
        expect(await valueOf(database, "a")).toBe(3);
        for (const [call, refused] of [
          [database.write(raiseLocked, input, { isolation: "serializable" }), "raiseLocked"],
          [database.write(raiseAlone, input, { isolation: "readCommitted" }), "raiseAlone"],
        ] as const)
          expect(await rejection(call)).toMatchObject({
            code: "ISOLATION_MISMATCH",
            details: { operation: refused },
          });
        expect(await valueOf(database, "a")).toBe(3);
      }),
    );

    test(
      "is refused when it is another word, and by a read, which is one snapshot",
      onCounters(async (database) => {
        const body = () => raised("a", 1);
        const unknown = { isolation: "repeatableRead" } as never;
        for (const [call, told] of [
          [database.write("typo", body, unknown), "readCommitted"],
          [
            database.read("read", body, {
              isolation: "serializable",
            } as never),
            "a read is always one snapshot",
          ],
        ] as const) {
          const error = await rejection(call);
          expect(error).toMatchObject({ code: "OPTION_INVALID" });
          expect(error.message).toContain(told);
        }
        expect(await valueOf(database, "a")).toBe(undefined);
      }),
    );

    test("is refused where an operation is made that cannot have it", () => {
      const forms = { key: () => "k", one: function* () {} };
      const many = function* () {
        return [];
      };
      for (const [given, told] of [
        [{ ...forms, isolation: "snapshot" }, "neither"],
        [{ ...forms, many }, 'needs `isolation: "readCommitted"`'],
        [{ ...forms, many, isolation: "serializable" }, 'needs `isolation: "readCommitted"`'],
        [{ ...forms, snapshotSafe: true }, "only together with"],
        [{ ...forms, snapshotSafe: false, isolation: "readCommitted" }, "snapshotSafe: true"],
        [{ ...forms, isolaton: "readCommitted" }, "isolaton"],
      ] as const)
        expect(() => operation("a", given as never)).toThrow(
          expect.objectContaining({
            code: "OPERATION_INVALID",
            message: expect.stringContaining(told),
          }),
        );
    });
  });
}

function* createCounters(): Tx<void> {
  yield* run(sql`
    CREATE TABLE app_counter (id ${text} PRIMARY KEY, value ${integer} NOT NULL) ${strict}`);
}

/** Reads without a lock, decides in JavaScript, and writes what it decided. */
function* raised(id: string, by: number): Tx<void> {
  const found = yield* row<{ value: number }>(sql`SELECT value FROM app_counter WHERE id = ${id}`);
  yield* put(id, found?.value, by);
}

function* raisedLocked(id: string, by: number): Tx<void> {
  // Nothing can be locked that is not there.
  yield* run(
    sql`INSERT INTO app_counter (id, value) VALUES (${id}, 0) ON CONFLICT (id) DO NOTHING`,
  );
  const found = yield* row<{ value: number }>(
    sql`SELECT value FROM app_counter WHERE id = ${id} ${lockRow}`,
  );
  yield* put(id, found?.value, by);
}

function* put(id: string, value: number | undefined, by: number): Tx<void> {
  if (value === undefined)
    yield* run(sql`INSERT INTO app_counter (id, value) VALUES (${id}, ${by})`);
  else yield* run(sql`UPDATE app_counter SET value = ${value + by} WHERE id = ${id}`);
}

interface Raise {
  /** What it is keyed by, so that nothing but the database keeps callers apart. */
  readonly caller: number;
  readonly by: number;
}

const keyOf = ({ caller }: Raise): string => `caller ${caller}`;

const raiseBy = operation("raiseBy", {
  key: keyOf,
  *one({ by }) {
    yield* raised("a", by);
  },
});

const raiseAlone = operation("raiseAlone", {
  key: keyOf,
  isolation: "serializable",
  *one({ by }) {
    yield* raised("a", by);
  },
});

const raiseLocked = operation("raiseLocked", {
  key: keyOf,
  isolation: "readCommitted",
  *one({ by }) {
    yield* raisedLocked("a", by);
  },
});

const nesting = operation("nesting", {
  key: keyOf,
  *one(input) {
    try {
      yield* raiseLocked(input);
    } catch {
      // The refusal does not come here.
    }
  },
});

const safely = operation("safely", {
  key: keyOf,
  isolation: "readCommitted",
  snapshotSafe: true,
  *one(input) {
    if (input.by === 0) throw new Error("Nothing to raise.");
    yield* raiseLocked(input);
  },
});

async function valueOf(database: Database, id: string): Promise<number | undefined> {
  const found = await database.read("value", () =>
    row<{ value: number }>(sql`SELECT value FROM app_counter WHERE id = ${id}`),
  );
  return found?.value;
}

function each(count: number, call: (caller: number) => Promise<unknown>): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, (_, index) => call(index)));
}
