import { describe, expect, test } from "vitest";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { attemptFailed, delayRequested, step, waiting } from "./execution-events.ts";
import {
  T0,
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

const yes = {
  kind: "completed",
  value: { approved: true, by: "ann" },
} as const;

/** Parent "p" with a child that somebody outside resolves. */
async function external({ store }: ExecutionFixture): Promise<string> {
  await store.create({ id: "p", function: "parent" });
  await store.create({ id: "p.n:x_1", function: "ask", role: "external" });
  return "p.n:x_1";
}

export function executionExternalSuite(backend: Backend): void {
  describe("an external execution", () => {
    test(
      "waits for its resolution and is never locked",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const id = await external(fixture);
        expect((await standing(fixture, id)).pending).toEqual({
          kind: "blocked",
          on: { kind: "resolution" },
          leaseUntil: null,
          lastLock: null,
        });
        expect(await store.lockPending({ ...byAnn, functions: ["ask"], limit: 1 })).toEqual({
          locked: [],
          damaged: [],
          parked: [],
          isLimited: false,
          hasSuspects: false,
        });
        // Nothing that reaches it is its resolution.
        await store.signal(id, "go", 1);
        expect(await refusal(fixture, () => store.lock(id, 1, byAnn))).toBe("LOCK_BLOCKED");
      }),
    );

    test.each([
      ["a failed attempt", attemptFailed(T0)],
      ["a step", step("s")],
      ["a wait", waiting(0, T0)],
      ["a request", delayRequested("Delay_p.n:x_1.o:1_1", T0)],
      ["an attempt that timed out", { kind: "attemptTimedOut", dueAt: T0, counts: "attempt" }],
      ["being given back", { kind: "unlocked", dueAt: T0, reason: "r" }],
      ["a new input", { kind: "continued", input: 1 }],
    ] as const)("cannot have %s, which would make it due", (_, event) =>
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const id = await external(fixture);
        for (const events of [[event], [{ kind: "paused" } as const, event]]) {
          const call = () => store.append(id, 1, events);
          expect(await refusal(fixture, call)).toBe(
            events.length === 1 ? "EVENTS_INVALID" : "EXECUTION_PAUSED",
          );
        }
        const { details } = await rejection(store.append(id, 1, [event]));
        expect(details).toMatchObject({ id, reason: "role" });
        await store.append(id, 1, [{ kind: "paused" }, { kind: "unpaused" }]);
        await store.finish(id, 3, yes);
      })(),
    );

    test(
      "resolved twice with equal values is resolved once, and its parent is told",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const id = await external(fixture);
        clock.advance(5);
        expect(await store.resolve(id, yes)).toBe("accepted");
        expect(await responsesOf(fixture, "p")).toEqual([[1, T0 + 5, "n:x", id, "completed", 1]]);
        const before = await dump(fixture);
        expect(
          await store.resolve(id, {
            kind: "completed",
            value: { by: "ann", approved: true },
          }),
        ).toBe("replayed");
        expect(await dump(fixture)).toEqual(before);
        expect(await store.lock("p", 1, byAnn)).toMatchObject({
          responses: [{ response: { result: yes } }],
        });
      }),
    );

    test.each([
      ["another value", { kind: "completed", value: "no" }],
      ["another kind", { kind: "timedOut" }],
    ] as const)("resolved again with %s is a conflict", (_, other) =>
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const id = await external(fixture);
        await store.resolve(id, yes);
        expect(await refusal(fixture, () => store.resolve(id, other))).toBe("RESOLUTION_CONFLICT");
        const error = await rejection(store.resolve(id, other));
        expect(error.details).toEqual({ id, resultKind: "completed" });
      })(),
    );

    test(
      "that was cancelled stays so",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const id = await external(fixture);
        await store.cancel(id);
        expect(await refusal(fixture, () => store.resolve(id, yes))).toBe("RESOLUTION_CONFLICT");
        expect(await kindsOf(fixture, id)).toBe("created cancellationRequested finished");
      }),
    );

    test(
      "of many who resolve it at once with different values one wins",
      onExecutions(backend, async (fixture) => {
        const id = await external(fixture);
        const settled = await Promise.allSettled(
          Array.from({ length: 8 }, (_, value) =>
            fixture.store.resolve(id, { kind: "completed", value }),
          ),
        );
        const won = settled.filter(({ status }) => status === "fulfilled");
        expect(won).toHaveLength(1);
        expect(await responsesOf(fixture, "p")).toHaveLength(1);
      }),
    );

    test(
      "is the only kind that can be resolved",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "b", function: "f", role: "activity" });
        for (const id of ["a", "b"])
          expect(await refusal(fixture, () => store.resolve(id, yes))).toBe("NOT_EXTERNAL");
        expect(await refusal(fixture, () => store.resolve("nobody", yes))).toBe(
          "EXECUTION_NOT_FOUND",
        );
      }),
    );
  });

  doubleAnswers(backend);
}

/** Puts an answer of `child` into the parent's responses, as nothing of ours does. */
function forge({ database }: ExecutionFixture, child: string, valueHash: string): Promise<void> {
  return database.write("forge", function* () {
    yield* run(sql`
      INSERT INTO holdfast_execution_response
        (execution, seq, at, kind, inbox, ordinal, source, outcome, finished_version, value_hash)
      SELECT key, 1, 0, 'child', 'n:x', 1, CAST(${child} AS TEXT), 'completed', 1, CAST(${valueHash} AS TEXT)
      FROM holdfast_execution WHERE id = 'p'`);
    yield* run(sql`UPDATE holdfast_execution SET responses = 1 WHERE id = 'p'`);
  });
}

function doubleAnswers(backend: Backend): void {
  describe("answering a parent twice for one child", () => {
    test(
      "[E36] a second end of a child is answered when it is the same and refused when not, and nothing changes",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "p", function: "parent" });
        await store.create({ id: "p.n:x_1", function: "f" });
        await store.finish("p.n:x_1", 1, yes);
        const before = await dump(fixture);
        await store.finish("p.n:x_1", 1, yes);
        expect(await dump(fixture)).toEqual(before);
        expect(await refusal(fixture, () => store.finish("p.n:x_1", 1, { kind: "timedOut" }))).toBe(
          "EXECUTION_FINISHED",
        );
        expect(await responsesOf(fixture, "p")).toHaveLength(1);
      }),
    );

    test(
      "[E36] an end that contradicts the answer the parent was given is a conflict, and nothing changes",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const id = await external(fixture);
        await forge(fixture, id, "the hash of something else");
        for (const call of [
          () => store.resolve(id, yes),
          () => store.finish(id, 1, yes),
          () => store.cancelActivity(id),
        ])
          expect(await refusal(fixture, call)).toBe("RESPONSE_CONFLICT");
      }),
    );

    test(
      "[E36] an end equal to the answer the parent was given is recorded, and answers no second time",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const id = await external(fixture);
        await store.create({ id: "other", function: "ask", role: "external" });
        await store.resolve("other", yes);
        const [, [, , end] = []] = await logOf(fixture, "other");
        const { resultHash } = end as { readonly resultHash: string };
        await forge(fixture, id, resultHash);
        expect(await store.resolve(id, yes)).toBe("accepted");
        expect(await responsesOf(fixture, "p")).toHaveLength(1);
      }),
    );
  });
}
