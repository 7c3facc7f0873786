import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { topLevelOf } from "../../src/model/ids/execution-id.ts";
import { rows, sql } from "../../src/kernel.ts";
import { appendEvents } from "../fixtures/execution-operations.ts";
import { isDeep, seed } from "../depth.ts";
import {
  finished,
  idOf,
  lockedEvent,
  makeExecution,
  newExecutionOf,
  step,
} from "../fixtures/execution-parts.ts";
import { Population, populationIds } from "./execution-calls.ts";
import type { Asked, Events } from "./execution-calls.ts";
import { withPlace } from "./place.ts";

const mostly = <T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constant(usual) },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
  );

const appending: fc.Arbitrary<Asked> = fc.record({
  kind: fc.constant("append" as const),
  id: fc.constantFrom(...populationIds, "missing"),
  events: fc.oneof(
    { weight: 3, arbitrary: fc.constant<Events>("step") },
    { weight: 4, arbitrary: fc.constant<Events>("finished") },
    { weight: 1, arbitrary: fc.constantFrom<Events>("steps", "joinNext") },
    { weight: 3, arbitrary: fc.constantFrom<Events>("delay", "delays") },
    { weight: 2, arbitrary: fc.constant<Events>("child") },
    {
      weight: 1,
      arbitrary: fc.constantFrom<Events>("takenDelay", "sameDelay", "takenChild"),
    },
    { weight: 1, arbitrary: fc.constant<Events>("poison") },
  ),
  versionOff: mostly(0, -1, 1),
  fence: fc.constantFrom("none", "right", "right", "wrong"),
  key: mostly("none", "right", "wrong"),
  respondTo: mostly("none", "parent", "wrong"),
});

const creating: fc.Arbitrary<Asked> = fc.record({
  kind: fc.constantFrom("create", "createLocked"),
  id: fc.constantFrom("n1", "n2", "n3", "top1", "top1.o:3_1", "missing.o:1_1"),
  function: mostly("f", "g"),
  input: mostly(1, 2),
  role: mostly<"workflow" | "external">("workflow", "external"),
  isPaused: mostly(false, true),
  isTagged: mostly(false, true),
});

const rounds = fc.array(
  fc.array(fc.oneof(appending, creating), { maxLength: 16 }).map(inAnyOrder),
  { maxLength: 4 },
);

/**
 * Calls for different executions have no order, so a round asks nothing whose
 * answer depends on one: a parent and its children are not both asked for,
 * nor several children when a call may send the whole set to `one`.
 */
function inAnyOrder(round: readonly Asked[]): readonly Asked[] {
  const isPoisoned = round.some((asked) => asked.kind === "append" && asked.events === "poison");
  const taken = new Map<string, string>();
  return round.filter(({ kind, id }) => {
    const family = topLevelOf(idOf(id));
    // A child cannot be created once its parent has ended.
    if (kind === "create" && family === id) return true;
    const who = isPoisoned || family === id ? id : "children";
    if (!taken.has(family)) taken.set(family, who);
    return taken.get(family) === who;
  });
}

const append = (id: string, events: Events, fence: "none" | "right" = "right"): Asked => ({
  kind: "append",
  id,
  events,
  versionOff: 0,
  fence,
  key: "none",
  respondTo: "none",
});

const create = (
  id: string,
  kind: "create" | "createLocked" = "create",
): Exclude<Asked, { kind: "append" }> => ({
  kind,
  id,
  function: "f",
  input: 1,
  role: "workflow",
  isPaused: false,
  isTagged: false,
});

/** Run whatever the seed, for few random rounds come to a set that commits several calls. */
const examples: [rounds: (readonly Asked[])[]][] = [
  [
    [
      [append("top1", "step"), append("top2", "steps"), append("top3", "step")],
      ["top1", "top2", "top3"].map((id) => append(id, "finished")),
    ],
  ],
  [
    [
      ["joining.n:js_2", "joining.n:other_1", "joining.n:js_1", "waiting.o:1_1", "task"].map((id) =>
        append(id, "finished", "none"),
      ),
      [append("joining", "finished"), append("waiting", "finished")],
    ],
  ],
  [[["n1", "n2", "top1.o:3_1", "n1", "missing.o:1_1"].map((id) => create(id))]],
  [
    [
      [
        append("top1", "delay"),
        append("top2", "delays"),
        append("top3", "takenDelay"),
        append("slept", "takenDelay"),
        append("joining.n:other_1", "sameDelay"),
      ],
      ["top1", "top2", "top3"].map((id) => append(id, "delay")),
    ],
  ],
  [
    [
      [append("top1", "child"), append("top2", "child"), append("top3", "step")],
      [append("joining", "takenChild"), append("top1", "child")],
    ],
  ],
  [
    [
      ["n1", "n2", "n3", "top1"].map((id) => create(id, "createLocked")),
      ["n1", "n4", "top2.o:3_1"].map((id) => create(id, "createLocked")),
    ],
  ],
];

describe("a set form of the execution log", () => {
  test("means what the same calls mean one after the other", () =>
    withPlace((together) =>
      withPlace(async (separate) => {
        const databases = [await together.open(), await separate.open()] as const;
        let runs = 0;
        await fc.assert(
          fc.asyncProperty(rounds, fc.constantFrom("together", "inTurn"), async (asked, manner) => {
            runs += 1;
            const prefix = `r${runs}-`;
            const [many, one] = await Promise.all([
              Population.make(databases[0], prefix, manner),
              Population.make(databases[1], prefix, "alone"),
            ]);
            for (const round of asked) expect(await many.ask(round)).toEqual(await one.ask(round));
            expect(await many.stored()).toEqual(await one.stored());
          }),
          {
            numRuns: isDeep ? 300 : 18,
            seed,
            examples: examples.flatMap(([asked]) => [
              [asked, "together"],
              [asked, "inTurn"],
            ]),
          },
        );
        expect(databases[0].stats().batchSize.max).toBeGreaterThanOrEqual(3);
        expect(databases[1].stats().batchSize.max).toBe(1);
      }),
    ));

  test.each([
    ["appends", examples[0]?.[0][0] ?? [], 3],
    ["ends", examples[1]?.[0][0] ?? [], 5],
    ["creations", (examples[2]?.[0][0] ?? []).slice(0, 3), 3],
    ["requests of delays", (examples[3]?.[0][0] ?? []).slice(0, 2), 2],
    ["requests of children", examples[4]?.[0][0] ?? [], 3],
    ["locked creations", (examples[5]?.[0][0] ?? []).slice(0, 3), 3],
  ])("commits %s together", (_, round, size) =>
    withPlace(async (place) => {
      const database = await place.open();
      const population = await Population.make(database, "w-", "together");
      const before = database.stats();
      await population.ask(round);
      const after = database.stats();
      expect(after.commits - before.commits).toBe(1);
      expect(after.calls - before.calls).toBe(size);
      expect(after.rollbacks + after.reruns).toBe(0);
    }),
  );

  test("is not asked about what it never takes", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const population = await Population.make(database, "w-", "together");
      await population.ask([
        append("top1", "joinNext"),
        { ...create("n1"), isTagged: true },
        { ...create("n2", "createLocked"), isTagged: true },
      ]);
      // A set that answers nobody counts as one that came to nothing.
      expect(database.stats().reruns).toBe(0);
    }));

  test("is split when the payloads of its events are large", () =>
    withPlace(async (place) => {
      const database = await place.open();
      await Population.make(database, "w-", "together");
      const before = database.stats().commits;
      await Promise.all(
        ["w-top1", "w-task", "w-joining.n:js_1"].map((id) =>
          database.write(appendEvents, {
            id: idOf(id),
            version: 2,
            at: 5_000,
            events: [step("large", "x".repeat(600_000))],
          }),
        ),
      );
      expect(database.stats().commits - before).toBe(3);
    }));

  test("answers two parents from two processes without a gap", () =>
    withPlace(async (place) => {
      const databases = [await place.open(), await place.open()] as const;
      const names = Array.from({ length: 60 }, (_, index) => index + 1);
      // The second parent is a child of the first, so that a set may hold it as either.
      const parents = ["p", "p.n:js_99"];
      const children = names.flatMap((index) => parents.map((parent) => `${parent}.n:js_${index}`));
      await databases[0].write("make", function* () {
        for (const id of [...parents, ...children])
          yield* makeExecution(newExecutionOf(id), [lockedEvent()]);
      });
      const ending = [...children, "p.n:js_99"].map((id, index) =>
        (index % 3 === 0 ? databases[0] : databases[1]).write(appendEvents, {
          id: idOf(id),
          version: 2,
          at: 5_000,
          events: [finished()],
        }),
      );
      await Promise.all(ending);
      const stored = await databases[0].read("responses", () =>
        rows<{ id: string; n: number; last: number; place: number }>(sql`
          SELECT e.id, count(*) AS n, max(r.seq) AS last, max(r.ordinal) AS place
          FROM holdfast_execution e JOIN holdfast_execution_response r ON r.execution = e.key
          GROUP BY e.id ORDER BY e.id`),
      );
      expect(stored).toEqual([
        { id: "p", n: 61, last: 61, place: 61 },
        { id: "p.n:js_99", n: 60, last: 60, place: 60 },
      ]);
    }));

  test("is not held up by a slow transaction that has locked a row of another set", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const population = await Population.make(database, "w-", "together");
      const shell = place.shell();
      await shell`BEGIN`;
      await shell`
        SELECT key FROM holdfast_execution WHERE id IN ('w-top2', 'w-joining') FOR UPDATE`;
      const locked = population.ask([append("top2", "step"), append("joining.n:js_1", "finished")]);
      await expect(
        population.ask([append("top1", "step"), append("waiting.o:1_1", "finished")]),
      ).resolves.toMatchObject({
        answers: [{ nextVersion: 3 }, { nextVersion: 2 }],
      });
      await shell`COMMIT`;
      await expect(locked).resolves.toMatchObject({
        answers: [{ nextVersion: 5 }, { nextVersion: 2 }],
      });
    }));
});
