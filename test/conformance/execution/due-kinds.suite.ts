import { describe, expect, test } from "vitest";
import type { PlaceDebt } from "../../../src/model/execution/place-debt.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { FunctionDraft } from "../../../src/stores/execution/lock/limits.ts";
import type { Backend } from "../backend.ts";
import { pastChecks } from "../past-checks.ts";
import { attemptFailed } from "./execution-events.ts";
import { T0, ann, byAnn, byBob, onExecutions, refusal, type ExecutionFixture } from "./fixture.ts";

type Terms = Omit<FunctionDraft, "name">;

/** The kinds of what a round gets, in the order of their ids: "b" for a run that has begun, "n" for a new one. */
async function taken(
  { store }: ExecutionFixture,
  limit: number,
  terms: Terms = {},
): Promise<readonly string[]> {
  const functions = [{ name: "f", ...terms }];
  const { locked } = await store.lockPending({ ...byBob, functions, limit });
  const begun = locked.filter(({ hasBegun }) => hasBegun);
  expect(begun).toEqual(locked.filter(({ id }) => id.startsWith("b")));
  return locked.map(({ id }) => id).toSorted();
}

interface Given {
  readonly count: number;
  readonly concurrencyKey?: string;
  readonly function?: string;
}

/** New runs n10, n11 …, each due a millisecond after the one before. */
async function createNew({ store, clock }: ExecutionFixture, given: Given): Promise<void> {
  await create({ store, clock }, "n", given);
}

/** The same of runs b10, b11 … that a worker has had, and that are due later than all before. */
async function createBegun({ store, clock }: ExecutionFixture, given: Given): Promise<void> {
  for (const id of await create({ store, clock }, "b", given)) {
    await store.lock(id, 1, byAnn);
    await store.unlock(id, 2, { holder: ann, reason: "later" });
    clock.advance(1);
  }
}

async function create(
  { store, clock }: Pick<ExecutionFixture, "store" | "clock">,
  kind: string,
  { count, concurrencyKey, function: name = "f" }: Given,
): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, (_, n) => `${kind}${concurrencyKey ?? ""}${10 + n}`);
  for (const id of ids) {
    await store.create({ id, function: name, ...(concurrencyKey && { concurrencyKey }) });
    clock.advance(1);
  }
  return ids;
}

/** New runs and runs that have begun share the places of a function. */
export function executionDueKindsSuite(backend: Backend): void {
  describe("new runs and runs that have begun", () => {
    test(
      "[E23] share the places of a function one to three, each kind longest due first",
      onExecutions(backend, async (fixture) => {
        await createNew(fixture, { count: 20 });
        await createBegun(fixture, { count: 7 });
        const first = ["b10", "b11", "b12", "b13", "b14", "n10"];
        expect(await taken(fixture, 6)).toEqual(first);
        // When one kind is missing, the other gets all.
        expect(await taken(fixture, 6)).toEqual(["b15", "b16", "n11", "n12", "n13", "n14"]);
        expect(await taken(fixture, 2)).toEqual(["n15", "n16"]);
      }),
    );

    test(
      "[E23] share them over rounds of one place, each told the debt that the one before left",
      onExecutions(backend, async (fixture) => {
        await createNew(fixture, { count: 9 });
        await createBegun(fixture, { count: 6 });
        const got: string[] = [];
        for (const debt of [0, 1, 2, 3, 0, 1, 2, 3, 0]) {
          const [id = "none"] = await taken(fixture, 1, { debt: { begun: 0, new: debt } });
          got.push(id);
        }
        expect(got).toEqual(["b10", "b11", "b12", "n10", "b13", "b14", "b15", "n11", "n12"]);
      }),
    );

    test(
      "[E23] are taken by age when the caller had three places for others",
      onExecutions(backend, async (fixture) => {
        await createBegun(fixture, { count: 1 });
        await createNew(fixture, { count: 2 });
        const owed = { debt: { begun: 3, new: 3 } };
        expect(await taken(fixture, 1, owed)).toEqual(["b10"]);
        await fixture.store.create({ id: "b90", function: "f" });
        await fixture.store.lock("b90", 1, byAnn);
        await fixture.store.unlock("b90", 2, { holder: ann, reason: "later" });
        expect(await taken(fixture, 1, owed)).toEqual(["n10"]);
        // One place pays one debt of both kinds.
        expect(await taken(fixture, 2, owed)).toEqual(["b90", "n11"]);
      }),
    );

    test(
      "[E23] may owe each other several turns",
      onExecutions(backend, async (fixture) => {
        await createBegun(fixture, { count: 5 });
        await createNew(fixture, { count: 5 });
        const debt = { begun: 0, new: 7 };
        expect(await taken(fixture, 4, { debt })).toEqual(["b10", "b11", "n10", "n11"]);
      }),
    );

    test(
      "[E23] share the room that a limit of their function leaves",
      onExecutions(backend, async (fixture) => {
        await createNew(fixture, { count: 9 });
        await createBegun(fixture, { count: 9 });
        const limits = { concurrencyMax: 4 };
        expect(await taken(fixture, 9, limits)).toEqual(["b10", "b11", "b12", "n10"]);
        expect(await taken(fixture, 9, limits)).toEqual([]);
      }),
    );

    test(
      "[E23] share the places of free keys, and no full key hides a kind",
      onExecutions(backend, async (fixture) => {
        const full = { concurrencyKey: "x" };
        await createNew(fixture, { ...full, count: 3 });
        await createBegun(fixture, { ...full, count: 3 });
        await createNew(fixture, { count: 4 });
        await createBegun(fixture, { count: 4 });
        const limits = { perKeyMax: 1 };
        expect(await taken(fixture, 5, limits)).toEqual(["b10", "b11", "b12", "bx10", "n10"]);
        expect(await taken(fixture, 9, limits)).toEqual(["b13", "n11", "n12", "n13"]);
      }),
    );

    test(
      "[E23] are found behind a thousand of their kind whose key is full",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await createBegun(fixture, { count: 1, concurrencyKey: "x" });
        expect(await taken(fixture, 1, { perKeyMax: 1 })).toEqual(["bx10"]);
        const many = Array.from({ length: 1_050 }, (_, n) => ({
          id: `many-${n}`,
          function: "f",
          concurrencyKey: "x",
        }));
        await Promise.all(many.map((draft) => store.create(draft)));
        await createBegun(fixture, { count: 1, concurrencyKey: "y" });
        await createNew(fixture, { count: 1, concurrencyKey: "z" });
        await createNew(fixture, { count: 1 });
        await createBegun(fixture, { count: 1 });
        const all = ["b10", "by10", "n10", "nz10"];
        expect(await taken(fixture, 9, { perKeyMax: 1 })).toEqual(all);
        expect(await taken(fixture, 9, { perKeyMax: 1 })).toEqual([]);
      }),
    );

    test(
      "[E23] are told apart by their first lock: an attempt of an activity that failed has begun",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await createNew(fixture, { count: 2 });
        await store.create({ id: "b1", function: "f", role: "activity" });
        await store.lock("b1", 1, byAnn);
        await store.append("b1", 2, [attemptFailed(clock.now() + 300)], { fence: ann });
        clock.advance(300);
        expect(await taken(fixture, 1)).toEqual(["b1"]);
      }),
    );

    test(
      "[E23] that remember code versions count as begun",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await createNew(fixture, { count: 2 });
        await store.create({ id: "b1", function: "f" });
        await store.lock("b1", 1, { ...byAnn, codeVersion: "v1" });
        const reason = "call 3 was made differently";
        const code = "NONDETERMINISM";
        await store.append("b1", 2, [{ kind: "parked", code, reason, codeVersion: "v1" }]);
        clock.advance(1);
        await createBegun(fixture, { count: 3 });
        const functions = ["f"];
        const terms = { ...byBob, codeVersion: "v2", functions, limit: 4 };
        const { locked } = await store.lockPending(terms);
        expect(locked.map(({ id }) => id).toSorted()).toEqual(["b1", "b10", "b11", "n10"]);
      }),
    );

    test(
      "[E23] of a damaged one another takes the place",
      onExecutions(backend, async (fixture) => {
        await createNew(fixture, { count: 5 });
        await createBegun(fixture, { count: 4 });
        const tear = sql`UPDATE holdfast_execution_event SET body = 'torn'
          WHERE execution = (SELECT key FROM holdfast_execution WHERE id = 'b10')`;
        await fixture.database.write("tear", () => pastChecks(fixture.database, tear));
        expect(await taken(fixture, 4)).toEqual(["b11", "b12", "b13", "n10"]);
      }),
    );

    test(
      "[E23] wait for nobody: what is due of one kind is told though the other is far off",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const isThere = (): Promise<boolean> =>
          store.waitForPending(["f"], { timeout: 0 }).then(
            () => true,
            () => false,
          );
        await store.create({ id: "n", function: "f", startAt: { in: 5_000 } });
        expect(await isThere()).toBe(false);
        await createBegun(fixture, { count: 1 });
        expect(await isThere()).toBe(true);
        expect(await taken(fixture, 9)).toEqual(["b10"]);
        clock.set(T0 + 5_000);
        expect(await isThere()).toBe(true);
      }),
    );

    test.each<[string, unknown]>([
      ["a number", 3],
      ["a negative count", { begun: -1, new: 0 }],
      ["half a place", { begun: 0, new: 0.5 }],
      ["no count", { begun: 0 }],
      ["another kind", { begun: 0, new: 0, old: 1 }],
    ])("[E23] are refused with a debt that is %s", (_, debt) =>
      onExecutions(backend, async (fixture) => {
        await createNew(fixture, { count: 1 });
        const call = () => taken(fixture, 1, { debt: debt as PlaceDebt });
        expect(await refusal(fixture, call)).toBe("OPTION_INVALID");
      })(),
    );
  });
}
