import { describe, expect, test } from "vitest";
import type { Database } from "../../../src/sql/database.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import type { Backend } from "../backend.ts";
import { delayRequested, joinNext, joinSetCreated, step } from "./execution-events.ts";
import {
  T0,
  ann,
  byAnn,
  onExecutions,
  stateOfExecution,
  type ExecutionFixture,
} from "./fixture.ts";

/** Runs that each wait for a delay of their own, which is over at T0 + 500. */
async function sleepers(
  { store }: Pick<ExecutionFixture, "store">,
  count: number,
): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, (_, index) => `run-${index}`);
  await Promise.all(
    ids.map(async (id) => {
      await store.create({ id, function: "f" });
      await store.lock(id, 1, byAnn);
      await store.append(
        id,
        2,
        [joinSetCreated("o:1"), delayRequested(`Delay_${id}.o:1_1`, T0 + 500), joinNext("o:1", T0)],
        { fence: ann },
      );
    }),
  );
  return ids;
}

async function responsesOf(
  store: Executions,
  id: string,
): Promise<readonly (readonly [seq: number, source: string | undefined])[]> {
  const { items } = await store.responses(id);
  return items.map(({ seq, response }) => [
    seq,
    response.kind === "delay" ? response.delay : undefined,
  ]);
}

/** Who deals with delays whose time is over. */
export function executionAnsweredOnceSuite(backend: Backend): void {
  describe("of several processes that expire timers at once", () => {
    test(
      "[R17] one answers a delay, and the others do next to nothing",
      onExecutions(backend, async (fixture) => {
        const { place, clock, database } = fixture;
        const ids = await sleepers(fixture, 90);
        clock.advance(500);
        const databases: Database[] = [database];
        // In memory there is one process: it may ask three times at once.
        for (let more = 0; more < 2; more += 1)
          databases.push(backend.survives ? await place.open() : database);
        const calls = (): number =>
          [...new Set(databases)].map((one) => one.stats().calls).reduce((sum, one) => sum + one);
        const before = calls();
        const reports = await Promise.all(
          databases.map((one) => executions(one, { clock }).expireTimers()),
        );
        const answered = reports.map(({ delays }) => delays);
        expect(answered.reduce((sum, one) => sum + one)).toBe(90);
        // Each reads once, answers what it can, and waits at most once for each
        // of the two others, after which it answers again.
        expect(calls() - before).toBeLessThanOrEqual(3 * (1 + 1 + 2 * 2));
        for (const id of ids) {
          expect(await responsesOf(fixture.store, id)).toEqual([[1, `Delay_${id}.o:1_1`]]);
          const { pending, responses } = await stateOfExecution(database, id);
          expect({ pending, responses }).toMatchObject({
            pending: { kind: "pending", dueAt: T0 + 500 },
            responses: 1,
          });
        }
      }),
    );

    test(
      "[R17] a page of delays is one write, and more are as many as there are pages",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await sleepers(fixture, 150);
        clock.advance(500);
        const { commits } = database.stats();
        expect(await store.expireTimers({ limit: 1_000 })).toMatchObject({
          delays: 150,
          hasMore: false,
        });
        expect(database.stats().commits - commits).toBeLessThanOrEqual(4);
        expect(await store.expireTimers()).toMatchObject({ delays: 0 });
      }),
    );
  });

  describe("delays of one execution that are over together", () => {
    test(
      "[R17] are answered in the order of their instants, each in its set",
      onExecutions(backend, async ({ store, clock, database }) => {
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [
          joinSetCreated("n:x"),
          joinSetCreated("n:y"),
          delayRequested("Delay_a.n:x_1", T0 + 300),
          delayRequested("Delay_a.n:y_1", T0 + 100),
          delayRequested("Delay_a.n:x_2", T0 + 200),
          delayRequested("Delay_a.n:y_2", T0 + 9_000),
          joinNext("n:y", T0),
          step("between"),
        ]);
        await store.create({ id: "b", function: "f" });
        await store.lock("b", 1, byAnn);
        await store.append("b", 2, [
          joinSetCreated("n:x"),
          delayRequested("Delay_b.n:x_1", T0 + 150),
        ]);
        clock.advance(400);
        expect(await store.expireTimers()).toMatchObject({ delays: 4 });
        expect(await responsesOf(store, "a")).toEqual([
          [1, "Delay_a.n:y_1"],
          [2, "Delay_a.n:x_2"],
          [3, "Delay_a.n:x_1"],
        ]);
        expect(await stateOfExecution(database, "a")).toMatchObject({
          pending: { kind: "pending", dueAt: T0 + 400 },
          responses: 3,
        });
        // It is run, so nothing wakes it.
        expect(await stateOfExecution(database, "b")).toMatchObject({
          pending: { kind: "locked" },
          responses: 1,
        });
      }),
    );

    test(
      "[R17] and paused, withdrawn or cancelled meanwhile, are left alone",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const [first = "", second = ""] = await sleepers(fixture, 3);
        await store.pauseDelay(`Delay_${first}.o:1_1`);
        await store.cancelDelay(`Delay_${second}.o:1_1`);
        clock.advance(500);
        expect(await store.expireTimers()).toMatchObject({ delays: 1 });
        await store.unpauseDelay(`Delay_${first}.o:1_1`);
        expect(await store.expireTimers()).toMatchObject({ delays: 1 });
        expect(await responsesOf(store, first)).toHaveLength(1);
      }),
    );
  });
}
