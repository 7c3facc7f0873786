import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { parseExecutionId } from "../../../src/model/ids/execution-id.ts";
import { parseFunctionName } from "../../../src/model/ids/function-name.ts";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Backend } from "../backend.ts";
import { joinNext, step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  annLater,
  bob,
  byAnn,
  dump,
  kindsOf,
  onExecutions,
  refusal,
  standing,
} from "./fixture.ts";

/** What a run asked for and was told, with the place that replay needs. */
const place = { call: 3, seen: 0 };

export function executionRecordedSuite(backend: Backend): void {
  describe("what a run records for its replay", () => {
    test(
      "[R12] is what it waits for by name, that the time for it is over, and that it was told of its cancellation",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
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
        expect(await store.append("a", 2, events)).toEqual({
          nextVersion: 6,
          at: T0,
        });
        // They block nothing by themselves.
        expect((await standing(fixture, "a")).pending.kind).toBe("locked");
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

  starts(backend);
}

/** Starts a run of its own beside, as the code asked for at this call. */
function scheduled(id: string, name = "g", call = 0): GivenEvent {
  return {
    kind: "scheduled",
    execution: parseExecutionId(id),
    function: parseFunctionName(name),
    startAt: "now",
    call,
  };
}

function starts(backend: Backend): void {
  describe("a run that starts others beside itself", () => {
    test(
      "[R12] is told of each whether it was created, was there, or has an id that is taken",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "same", function: "g", input: 1 });
        await store.create({ id: "input", function: "g", input: 2 });
        await store.create({ id: "function", function: "h", input: 1 });
        const ids = ["new", "same", "input", "function", "new", "new"];
        const children = ids.map((id, n) => ({
          id,
          function: "g",
          input: n === 5 ? 9 : 1,
        }));
        const append = () =>
          store.append("a", 1, [...ids.map((id) => scheduled(id)), step("s")], {
            children,
          });
        const told = {
          nextVersion: 8,
          at: T0,
          scheduled: [
            { version: 1, outcome: "created" },
            { version: 2, outcome: "existed" },
            { version: 3, outcome: "conflict" },
            { version: 4, outcome: "conflict" },
            { version: 5, outcome: "existed" },
            // The same id in one append, with another input: the first has it.
            { version: 6, outcome: "conflict" },
          ],
        };
        expect(await append()).toEqual(told);
        expect(await kindsOf(fixture, "new")).toBe("created");
        expect(await store.created("input")).toMatchObject({ input: 2 });
        const { items } = await store.events("a", { kinds: ["scheduled"] });
        expect(
          items.map(({ event }) => (event.kind === "scheduled" ? event.outcome : event.kind)),
        ).toEqual(told.scheduled.map(({ outcome }) => outcome));
        // Asked again it answers as the first time, though all of them exist by now.
        const before = await dump(fixture);
        expect(await append()).toEqual(told);
        expect(await dump(fixture)).toEqual(before);
      }),
    );

    test(
      "[R12] is told of a conflict while the run that had the id is being removed",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "old", function: "g" });
        await database.write("half removed", () =>
          run(sql`UPDATE holdfast_execution SET removing_at = 1 WHERE id = 'old'`),
        );
        expect(
          await store.append("a", 1, [scheduled("old"), joinNext("n:x", T0)], {
            children: [{ id: "old", function: "g" }],
          }),
        ).toEqual({
          nextVersion: 3,
          at: T0,
          scheduled: [{ version: 1, outcome: "conflict" }],
        });
      }),
    );

    test(
      "[R12] says what it starts, the same in the event and beside it, and at the top",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        for (const [event, children] of [
          [scheduled("b"), []],
          [scheduled("b"), [{ id: "c", function: "g" }]],
          [scheduled("b"), [{ id: "b", function: "h" }]],
          [scheduled("a.n:x_1"), [{ id: "a.n:x_1", function: "g" }]],
        ] as const)
          expect(await refusal(fixture, () => store.append("a", 1, [event], { children }))).toBe(
            "EVENTS_INVALID",
          );
      }),
    );

    test(
      "[R12] repeats nothing that differs: another input or call at its version is a conflict of versions",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const append = (input: number, call: number) =>
          store.append("a", 1, [scheduled("b", "g", call)], {
            children: [{ id: "b", function: "g", input }],
          });
        await append(1, 1);
        for (const [input, call] of [
          [2, 1],
          [1, 2],
        ] as const)
          expect(await refusal(fixture, () => append(input, call))).toBe("VERSION_CONFLICT");
      }),
    );

    test(
      "[R12] shows its progress only while it has the lock, when it says who it is",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        const { holder } = await store.lock("a", 1, byAnn);
        await store.setProgress("a", 1, { fence: holder });
        await store.append("a", 2, [joinNext("n:x", T0)]);
        await store.setProgress("a", 2, { fence: ann });
        for (const fence of [annLater, bob])
          expect(await refusal(fixture, () => store.setProgress("a", 3, { fence }))).toBe(
            "LOCK_LOST",
          );
        expect(await store.get("a")).toMatchObject({ progress: 2 });
        await store.unlock("a", 3, { holder: ann, reason: "r" });
        clock.advance(1);
        await store.append("a", 4, [waiting(0, T0)]);
        await store.finish("a", 5, { kind: "timedOut" });
        expect(await refusal(fixture, () => store.setProgress("a", 3, { fence: ann }))).toBe(
          "LOCK_LOST",
        );
        expect(await refusal(fixture, () => store.setProgress("nobody", 3, { fence: ann }))).toBe(
          "EXECUTION_NOT_FOUND",
        );
      }),
    );
  });
}
