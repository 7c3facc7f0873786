import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { executionContext } from "../../../src/stores/execution/context.ts";
import type { Backend } from "../backend.ts";
import { step } from "./execution-events.ts";
import { T0, byAnn, onExecutions, standing } from "./fixture.ts";

/** What a run asked for and was told, with the place that replay needs. */
const place = { call: 3, seen: 0 };

export function executionRecordedSuite(backend: Backend): void {
  describe("what a run records for its replay", () => {
    test(
      "[R12] is what it waits for by name, that the time for it is over, and that it was told of its cancellation",
      onExecutions(backend, async (setting) => {
        const { store } = setting;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        const events: readonly GivenEvent[] = [
          { kind: "receiveRequested", signal: "go", expiresAt: null, ...place },
          {
            kind: "receiveRequested",
            signal: "stop",
            expiresAt: T0 + 5,
            ...place,
          },
          { kind: "receiveTimedOut", signal: "stop", ...place },
          { kind: "cancellationDelivered", ...place },
        ];
        expect(await store.append("a", 2, events)).toEqual({ nextVersion: 6 });
        // They block nothing by themselves.
        expect((await standing(setting, "a")).pending.kind).toBe("locked");
        const { items } = await store.events("a", { from: 2 });
        expect(items.map(({ event }) => event)).toEqual(events);
        await store.unlock("a", 6, { holder: byAnn.holder, reason: "r" });
        const { history } = await store.lock("a", 7, byAnn);
        expect(history.map(({ event }) => event)).toEqual(events);
      }),
    );

    test(
      "[R12] is how a transaction ended, with the hash of its input, as for any step",
      onExecutions(backend, async ({ store, database }) => {
        const { values } = executionContext(database);
        await store.create({ id: "a", function: "f" });
        const done = { kind: "transactionFinished", name: "t" } as const;
        await store.append("a", 1, [
          { ...done, outcome: "completed", value: 7n, input: { n: 1 } },
          { ...done, outcome: "failed", value: { name: "E", message: "m" } },
          step("after"),
        ]);
        const { items } = await store.events("a", { from: 1, limit: 2 });
        expect(items.map(({ event }) => event)).toEqual([
          {
            ...done,
            call: 0,
            seen: 0,
            outcome: "completed",
            value: 7n,
            inputHash: values.hash({ n: 1 }),
          },
          {
            ...done,
            call: 0,
            seen: 0,
            outcome: "failed",
            value: { name: "E", message: "m" },
            inputHash: null,
          },
        ]);
      }),
    );
  });
}
