import { describe, expect, test } from "vitest";
import { parseExecutionId } from "../../../src/model/ids/execution-id.ts";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { expireDeadline } from "../../../src/stores/execution/timers/expire.ts";
import { cancellationMarked } from "../../../src/stores/execution/topics.ts";
import type { Backend } from "../backend.ts";
import { attemptFailed, childRequested, step } from "./execution-events.ts";
import {
  T0,
  ann,
  byAnn,
  dump,
  kindsOf,
  logOf,
  onExecutions,
  refusal,
  responsesOf,
  standing,
} from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

/** Roles and states in which a cancellation finds an execution "a", and what it does. */
const situations = [
  ["a workflow that never began", "workflow", none, "cancelled"],
  ["a workflow that runs", "workflow", lock, "requested"],
  [
    "a workflow that was locked and recorded nothing",
    "workflow",
    async (fixture: ExecutionFixture) => {
      await lock(fixture);
      await fixture.store.unlock("a", 2, { holder: ann, reason: "busy" });
    },
    "cancelled",
  ],
  [
    "a workflow whose history was that of earlier runs",
    "workflow",
    async ({ store }: ExecutionFixture) => {
      await store.append("a", 1, [step("early"), { kind: "continued", input: 2 }]);
    },
    "cancelled",
  ],
  ["a workflow that never began and has a child", "workflow", child, "requested"],
  ["an activity that never began and has a child", "activity", child, "requested"],
  [
    "a workflow that is paused between two runs",
    "workflow",
    async (fixture: ExecutionFixture) => {
      await lock(fixture);
      await fixture.store.pause("a");
      await fixture.store.unlock("a", 3, { holder: ann, reason: "paused" });
    },
    "cancelled",
  ],
  [
    "a workflow that is parked before it began",
    "workflow",
    ({ store }: ExecutionFixture) =>
      store.append("a", 1, [{ kind: "parked", code: "X", reason: "x", codeVersion: null }]),
    "cancelled",
  ],
  ["an activity that never began", "activity", none, "cancelled"],
  ["an activity that runs", "activity", lock, "requested"],
  [
    "an activity between two attempts",
    "activity",
    async (fixture: ExecutionFixture) => {
      await lock(fixture);
      await fixture.store.append("a", 2, [attemptFailed(T0 + 500)]);
    },
    "cancelled",
  ],
  ["an external execution", "external", none, "cancelled"],
] as const;

function none(): Promise<void> {
  return Promise.resolve();
}

async function child({ store }: ExecutionFixture): Promise<void> {
  await store.create({ id: "a.n:x_1", function: "g" });
}

async function lock({ store }: ExecutionFixture): Promise<void> {
  await store.lock("a", 1, byAnn);
}

export function executionCancelSuite(backend: Backend): void {
  describe("cancelling an execution", () => {
    test.each(situations)("of %s", (_, role, before, outcome) =>
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f", role });
        await before(fixture);
        const was = await standing(fixture, "a");
        expect(await store.cancel("a", { reason: "not needed" })).toBe(outcome);
        expect(await standing(fixture, "a")).toEqual(
          outcome === "cancelled"
            ? {
                version: was.version + 2,
                lifecycle: "active",
                pending: {
                  kind: "finished",
                  finishedAt: T0,
                  resultKind: "cancelled",
                },
              }
            : {
                version: was.version + 1,
                lifecycle: "cancelling",
                pending: was.pending,
              },
        );
        const after = await dump(fixture);
        expect(await store.cancel("a", { reason: "again" })).toBe(
          outcome === "cancelled" ? "alreadyFinished" : "alreadyCancelling",
        );
        expect(await dump(fixture)).toEqual(after);
      })(),
    );

    test(
      "[R9] leaves the run to its worker, whose next append comes behind the request",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.cancel("a");
        expect(
          await refusal(fixture, () => store.append("a", 2, [step("mine")], { fence: ann })),
        ).toBe("VERSION_CONFLICT");
        await store.append("a", 3, [step("mine")], { fence: ann });
        for (const event of [
          attemptFailed(T0),
          { kind: "continued", input: 1 },
          { kind: "paused" },
          { kind: "parked", code: "X", reason: "x", codeVersion: null },
          { kind: "cancellationRequested", reason: null, cause: "request" },
        ] as const)
          expect(await refusal(fixture, () => store.append("a", 4, [event], { fence: ann }))).toBe(
            "EXECUTION_CANCELLING",
          );
        await store.unlock("a", 4, { holder: ann, reason: "told to stop" });
        // Nobody has it, so nobody may add to it before it is locked.
        expect(
          await refusal(fixture, () => store.append("a", 5, [step("mine")], { fence: ann })),
        ).toBe("EXECUTION_CANCELLING");
        await store.finish("a", 5, { kind: "cancelled", reason: "told" });
        expect(await standing(fixture, "a")).toMatchObject({
          lifecycle: "active",
          pending: { kind: "finished", resultKind: "cancelled" },
        });
      }),
    );

    test(
      "keeps the reason in the log and in the result",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "p", function: "parent" });
        await store.append("p", 1, [childRequested("n:x", "p.n:x_1", "f")], {
          children: [{ id: "p.n:x_1", function: "f", role: "activity" }],
        });
        await store.cancel("p.n:x_1", { reason: "too late" });
        expect((await logOf(fixture, "p.n:x_1"))[1]).toEqual([
          1,
          "cancellationRequested",
          { reason: "too late", cause: "request" },
        ]);
        expect(await store.lock("p", 2, byAnn)).toMatchObject({
          responses: [
            {
              response: {
                finishedVersion: 2,
                result: { kind: "cancelled", reason: "too late" },
              },
            },
          ],
        });
      }),
    );

    test(
      "an unknown execution is not found",
      onExecutions(backend, async (fixture) => {
        for (const call of [
          () => fixture.store.cancel("nobody"),
          () => fixture.store.cancelActivity("nobody"),
        ])
          expect(await refusal(fixture, call)).toBe("EXECUTION_NOT_FOUND");
      }),
    );
  });

  describe("ending an activity at once", () => {
    test.each(["pending", "locked", "cancelling"])(
      "while it is %s: its parent is answered and its worker's result refused",
      (state) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          const id = "p.n:x_1";
          await store.create({ id: "p", function: "parent" });
          await store.create({ id, function: "f", role: "activity" });
          if (state !== "pending") await store.lock(id, 1, byAnn);
          if (state === "cancelling") await store.cancel(id);
          expect(await store.cancelActivity(id)).toBe("cancelled");
          expect(await store.cancelActivity(id)).toBe("alreadyFinished");
          expect((await responsesOf(fixture, "p")).map(([, , , ...rest]) => rest)).toEqual([
            [id, "cancelled", { pending: 1, locked: 2, cancelling: 3 }[state]],
          ]);
          expect(
            await refusal(fixture, () =>
              store.finish(id, 2, { kind: "completed", value: 1 }, { fence: ann }),
            ),
          ).toBe("EXECUTION_FINISHED");
        })(),
    );

    test(
      "is refused for a workflow, which may have children",
      onExecutions(backend, async (fixture) => {
        await fixture.store.create({ id: "a", function: "f" });
        expect(await refusal(fixture, () => fixture.store.cancelActivity("a"))).toBe(
          "EVENTS_INVALID",
        );
      }),
    );
  });

  deadlines(backend);
  driving(backend);
}

/** For whoever ends what is being cancelled. */
function driving(backend: Backend): void {
  describe("what is being cancelled", () => {
    test(
      "is found by function, page by page, with why",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        const heard: string[] = [];
        database.subscribe((hint) => {
          if (hint.kind === "change" && hint.operation === cancellationMarked) heard.push(hint.key);
        });
        for (const id of ["a", "b", "c"]) {
          await store.create({ id, function: "f", deadline: 800 });
          await store.lock(id, 1, byAnn);
        }
        await store.create({ id: "other", function: "g" });
        await store.lock("other", 1, byAnn);
        await store.cancel("b", { reason: "not needed" });
        await store.cancel("other");
        expect(heard).toEqual(["f", "g"]);
        clock.advance(800);
        await store.expireTimers();
        const first = await store.cancelling({ function: "f", limit: 2 });
        expect(first).toEqual({
          items: [
            {
              id: "a",
              role: "workflow",
              nextVersion: 3,
              requestedAt: T0 + 800,
              reason: "the deadline has passed",
              cause: "deadline",
              leaseUntil: T0 + 1_000,
            },
            expect.objectContaining({
              id: "b",
              requestedAt: T0,
              reason: "not needed",
              cause: "request",
            }),
          ],
          damaged: [],
          next: expect.any(String),
        });
        await store.finish("c", 3, { kind: "timedOut" });
        expect(await store.cancelling({ function: "f", after: String(first.next) })).toEqual({
          items: [],
          damaged: [],
          next: undefined,
        });
      }),
    );
  });
}

function deadlines(backend: Backend): void {
  const expire = async ({ database, clock }: ExecutionFixture): Promise<string> => {
    const expiring = expireDeadline(executionContext(database));
    return (await database.write(expiring, { id: parseExecutionId("a"), at: clock.now() })).outcome;
  };

  describe("a deadline", () => {
    test.each([
      ["a workflow that never began", "workflow", none, "timedOut"],
      ["a workflow that runs", "workflow", lock, "requested"],
      ["a workflow that never began and has a child", "workflow", child, "requested"],
      ["an activity that waits", "activity", none, "timedOut"],
      ["an activity that runs", "activity", lock, "timedOut"],
      ["an external execution", "external", none, "timedOut"],
      [
        "a paused activity",
        "activity",
        ({ store }: ExecutionFixture) => store.pause("a"),
        "timedOut",
      ],
    ] as const)("ends %s at its instant, and not before", (_, role, before, outcome) =>
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f", role, deadline: 800 });
        await before(fixture);
        clock.advance(799);
        const was = await dump(fixture);
        expect(await expire(fixture)).toBe("notExpired");
        expect(await dump(fixture)).toEqual(was);
        clock.advance(1);
        expect(await expire(fixture)).toBe(outcome);
        expect(await standing(fixture, "a")).toMatchObject(
          outcome === "timedOut"
            ? { pending: { kind: "finished", resultKind: "timedOut" } }
            : { lifecycle: "cancelling" },
        );
        const after = await dump(fixture);
        expect(await expire(fixture)).toBe("notExpired");
        expect(await dump(fixture)).toEqual(after);
      })(),
    );

    test(
      "does nothing to what has none or was done in time",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        clock.advance(1_000_000);
        expect(await expire(fixture)).toBe("notExpired");
        await store.finish("a", 1, { kind: "completed", value: 1 });
        expect(await expire(fixture)).toBe("notExpired");
        expect(await kindsOf(fixture, "a")).toBe("created finished");
      }),
    );
  });
}
