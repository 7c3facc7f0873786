import { describe, expect, test } from "vitest";
import { parseDelayId } from "../../../src/model/ids/delay-id.ts";
import { run } from "../../../src/sql/operation.ts";
import type { Statement } from "../../../src/sql/statement.ts";
import { sql } from "../../../src/sql/statement.ts";
import { answerDelay } from "../../fixtures/execution-operations.ts";
import type { Backend } from "../backend.ts";
import { childRequested, delayRequested, joinNext, step, waiting } from "./execution-events.ts";
import { T0, byAnn, dump, onExecutions, refusal, standing } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

/** A call that fails after it has written: how it comes about, the call, and its code. */
interface Failing {
  readonly prepare: (fixture: ExecutionFixture) => Promise<unknown>;
  readonly call: (fixture: ExecutionFixture) => Promise<unknown>;
  readonly code: string;
}

const delay = "Delay_a.o:1_1";
const done = { kind: "completed", value: 1 } as const;

function edit({ database }: ExecutionFixture, statement: Statement): Promise<number> {
  return database.write("edit", () => run(statement));
}

/** Parent "a" with a child "a.n:x_1", and then no parent any more. */
async function orphan(fixture: ExecutionFixture): Promise<void> {
  await fixture.store.create({ id: "a", function: "f" });
  await fixture.store.create({
    id: "a.n:x_1",
    function: "f",
    role: "external",
  });
  await edit(fixture, sql`DELETE FROM holdfast_execution WHERE id = 'a'`);
}

/** Events where the next executions would have their first ones. */
async function occupyLogs({ database }: ExecutionFixture): Promise<void> {
  await database.write("occupyLogs", function* () {
    for (let ahead = 1; ahead <= 50; ahead += 1)
      yield* run(sql`
        INSERT INTO holdfast_execution_event (execution, version, at, responses, kind, call, seen, body)
        SELECT MAX(key) + CAST(${ahead} AS BIGINT), 0, 0, 0, 'created', 0, 0, '{}' FROM holdfast_execution`);
  });
}

/** The table of what was once left behind, row by row, with what is like it here. */
const rowsOfTheTable: Readonly<Record<string, Failing>> = {
  "append of a delay that was requested before": {
    prepare: async ({ store }) => {
      await store.create({ id: "a", function: "f" });
      await store.append("a", 1, [delayRequested(delay, T0)]);
    },
    call: ({ store }) => store.append("a", 2, [delayRequested(delay, T0 + 1)]),
    code: "DELAY_EXISTS",
  },
  "append of several events, the last of which is refused": {
    prepare: ({ store }) => store.create({ id: "a", function: "f" }),
    call: ({ store }) =>
      store.append("a", 1, [
        step("one"),
        delayRequested(delay, T0),
        joinNext("o:1", T0),
        waiting(0, T0),
        { kind: "unpaused" },
      ]),
    code: "EXECUTION_NOT_PAUSED",
  },
  "append of several quiet events, the last of which is refused": {
    prepare: ({ store }) => store.create({ id: "a", function: "f" }),
    call: ({ store }) =>
      store.append("a", 1, [step("one"), delayRequested(delay, T0), delayRequested(delay, T0)]),
    code: "DELAY_EXISTS",
  },
  "append with children, one of which exists": {
    prepare: async ({ store }) => {
      await store.create({ id: "a", function: "f" });
      await store.create({ id: "a.n:x_2", function: "g" });
    },
    call: ({ store }) =>
      store.append(
        "a",
        1,
        [childRequested("n:x", "a.n:x_1", "g"), childRequested("n:x", "a.n:x_2", "g")],
        {
          children: [
            { id: "a.n:x_1", function: "g", tags: ["eu"] },
            { id: "a.n:x_2", function: "g" },
          ],
        },
      ),
    code: "EVENTS_INVALID",
  },
  "append with a run of its own that exists with another input": {
    prepare: async ({ store }) => {
      await store.create({ id: "a", function: "f" });
      await store.create({ id: "b", function: "g", input: 1 });
    },
    call: ({ store }) =>
      store.append("a", 1, [waiting(0, T0)], {
        children: [
          { id: "a.n:x_1", function: "g" },
          { id: "b", function: "g", input: 2 },
        ],
      }),
    code: "EXECUTION_EXISTS",
  },
  "end of a child whose parent was told something else": {
    prepare: async (fixture) => {
      await fixture.store.create({ id: "a", function: "f" });
      await fixture.store.create({ id: "a.n:x_1", function: "f" });
      await edit(
        fixture,
        sql`
        INSERT INTO holdfast_execution_response
          (execution, seq, at, kind, inbox, ordinal, source, outcome, finished_version, value_hash)
        SELECT key, 1, 0, 'child', 'n:x', 1, 'a.n:x_1', 'failed', 1, 'another' FROM holdfast_execution WHERE id = 'a'`,
      );
    },
    call: ({ store }) => store.finish("a.n:x_1", 1, done),
    code: "RESPONSE_CONFLICT",
  },
  "end of a child whose parent is missing": {
    prepare: orphan,
    call: ({ store }) => store.finish("a.n:x_1", 1, done),
    code: "EXECUTION_NOT_FOUND",
  },
  "cancellation of a child whose parent is missing": {
    prepare: orphan,
    call: ({ store }) => store.cancel("a.n:x_1"),
    code: "EXECUTION_NOT_FOUND",
  },
  "resolution of a child whose parent is missing": {
    prepare: orphan,
    call: ({ store }) => store.resolve("a.n:x_1", done),
    code: "EXECUTION_NOT_FOUND",
  },
  "answer to a delay whose execution is missing": {
    prepare: async (fixture) => {
      await fixture.store.create({ id: "a", function: "f" });
      await fixture.store.append("a", 1, [delayRequested(delay, T0)]);
      await edit(fixture, sql`DELETE FROM holdfast_execution WHERE id = 'a'`);
    },
    call: ({ database }) =>
      database.write(answerDelay, {
        delay: parseDelayId(delay),
        at: T0,
        outcome: "expired",
      }),
    code: "EXECUTION_NOT_FOUND",
  },
  "creation whose first event cannot be written": {
    prepare: occupyLogs,
    call: ({ store }) => store.create({ id: "new", function: "f", tags: ["eu", "urgent"] }),
    code: "CONSTRAINT_VIOLATED",
  },
  "creation with a lock whose first event cannot be written": {
    prepare: occupyLogs,
    call: ({ store }) => store.createLocked({ id: "new", function: "f" }, byAnn),
    code: "CONSTRAINT_VIOLATED",
  },
  "lock of what cannot be read": {
    prepare: async (fixture) => {
      await fixture.store.create({ id: "a", function: "f" });
      await fixture.store.append("a", 1, [step("one")]);
      await edit(
        fixture,
        sql`UPDATE holdfast_execution_event SET body = 'torn'
            WHERE version = 1 AND execution = (SELECT key FROM holdfast_execution WHERE id = 'a')`,
      );
    },
    call: ({ store }) => store.lock("a", 2, byAnn),
    code: "CORRUPT_ROW",
  },
  "fork of what cannot be read to its end": {
    prepare: async (fixture) => {
      await fixture.store.create({ id: "a", function: "f" });
      await fixture.store.append("a", 1, [step("one"), delayRequested(delay, T0)]);
      await edit(
        fixture,
        sql`UPDATE holdfast_execution_event SET body = 'torn' WHERE kind = 'delayRequested'`,
      );
    },
    call: ({ store }) => store.fork("a", 2, { id: "copy" }),
    code: "CORRUPT_ROW",
  },
};

/** All rows but those of the neighbours, whose ids begin "neighbour". */
async function dumpOfOthers(fixture: ExecutionFixture): Promise<unknown> {
  const [executions = [], ...others] = (await dump(fixture)) as readonly {
    readonly id?: string;
    readonly key: number;
    readonly execution?: number;
  }[][];
  const isNeighbour = ({ id = "" }: { readonly id?: string }): boolean =>
    id.startsWith("neighbour");
  const keys = new Set(executions.filter(isNeighbour).map(({ key }) => key));
  return [
    executions.filter((row) => !isNeighbour(row)),
    ...others.map((table) => table.filter(({ execution = 0 }) => !keys.has(execution))),
  ];
}

export function executionAtomicitySuite(backend: Backend): void {
  describe("nothing is left behind by", () => {
    test.each(Object.entries(rowsOfTheTable))(
      "[E82] %s, alone and amid calls that succeed",
      (_, { prepare, call, code }) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          for (const id of ["neighbour-1", "neighbour-2"])
            await store.create({ id, function: "n" });
          await prepare(fixture);
          expect(await refusal(fixture, () => call(fixture))).toBe(code);
          const before = await dumpOfOthers(fixture);
          const settled = await Promise.allSettled([
            store.append("neighbour-1", 1, [step("one")]),
            store.append("neighbour-2", 1, [waiting(0, T0)]),
            call(fixture),
            store.append("neighbour-1", 2, [step("two")]),
            call(fixture),
            store.signal("neighbour-2", "go", 1),
          ]);
          expect(
            settled.map((one) =>
              one.status === "fulfilled"
                ? "succeeded"
                : (one.reason as { readonly code?: string }).code,
            ),
          ).toEqual(["succeeded", "succeeded", code, "succeeded", code, "succeeded"]);
          expect(await dumpOfOthers(fixture)).toEqual(before);
          expect((await standing(fixture, "neighbour-1")).version).toBe(2);
          expect(await standing(fixture, "neighbour-2")).toMatchObject({
            version: 1,
            pending: { kind: "pending" },
          });
        })(),
    );
  });
}
