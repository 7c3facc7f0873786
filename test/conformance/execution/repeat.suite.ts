import { describe, expect, test } from "vitest";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { childRequested, delayRequested, joinNext, step } from "./execution-events.ts";
import { T0, ann, bob, byAnn, byBob, dump, onExecutions, refusal } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

/** Makes a call twice, as somebody does who could not learn its outcome: the second answers the same and writes nothing. */
async function twice<T>(fixture: ExecutionFixture, call: () => Promise<T>): Promise<T> {
  const first = await call();
  const before = await dump(fixture);
  fixture.clock.advance(1);
  expect(await call()).toEqual(first);
  expect(await dump(fixture)).toEqual(before);
  return first;
}

export function executionRepeatSuite(backend: Backend): void {
  describe("a call made again because its outcome was not known", () => {
    test.each([
      ["quiet events", [step("one"), step("two", { n: 1n })]],
      ["a question", [joinNext("n:x", T0)]],
      ["requests", [delayRequested("Delay_a.n:x_1", T0), joinNext("n:x", T0)]],
      ["a new input", [{ kind: "continued", input: 2 }]],
      ["a lock given back", [{ kind: "unlocked", dueAt: T0, reason: "r" }]],
    ] as readonly (readonly [string, readonly GivenEvent[]])[])(
      "appends %s once, with and without a fence",
      (_, events) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          for (const options of [{}, { fence: ann }]) {
            const id = "fence" in options ? "b" : "a";
            const at = fixture.clock.now();
            await store.create({ id, function: "f" });
            await store.lock(id, 1, byAnn);
            const own = JSON.parse(
              JSON.stringify(events, (__, value: unknown) =>
                typeof value === "bigint" ? Number(value) : value,
              ).replaceAll("Delay_a", `Delay_${id}`),
            ) as readonly GivenEvent[];
            expect(await twice(fixture, () => store.append(id, 2, own, options))).toEqual({
              nextVersion: 2 + events.length,
              at,
            });
          }
        })(),
    );

    test(
      "creates the children of an append once",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        expect(
          await twice(fixture, () =>
            store.append("a", 1, [childRequested("n:x", "a.n:x_1", "g")], {
              children: [{ id: "a.n:x_1", function: "g", input: 1 }],
            }),
          ),
        ).toEqual({ nextVersion: 2, at: T0 });
      }),
    );

    test(
      "ends an execution once, with its lock, its last events and its parent",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const done = { kind: "completed", value: { b: 1, a: 2 } } as const;
        await store.create({ id: "p", function: "f" });
        await store.create({ id: "p.n:x_1", function: "f" });
        await store.lock("p.n:x_1", 1, byAnn);
        const finish = (fence = ann, value: object = done.value) =>
          store.finish("p.n:x_1", 2, { ...done, value }, { fence, events: [step("last")] });
        expect(await twice(fixture, finish)).toEqual({
          nextVersion: 3,
          at: T0,
          parent: { id: "p", seq: 1 },
        });
        // Equal is equal, however it was written down.
        expect(await finish(ann, { a: 2, b: 1 })).toEqual({
          nextVersion: 3,
          at: T0,
          parent: { id: "p", seq: 1 },
        });
        for (const call of [() => finish(bob), () => finish(ann, { a: 2, b: 2 })])
          expect(await refusal(fixture, call)).toBe("EXECUTION_FINISHED");
      }),
    );

    test(
      "answers as the first time also when others have written since",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        const append = () => store.append("a", 2, [step("mine")], { fence: ann });
        const first = await append();
        await store.unlock("a", 3, { holder: ann, reason: "r" });
        fixture.clock.advance(1);
        await store.lock("a", 4, byBob);
        const before = await dump(fixture);
        expect(await append()).toEqual(first);
        expect(await dump(fixture)).toEqual(before);
      }),
    );

    test(
      "is a conflict when the log holds something else, and the error claims nothing about who wrote it",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [step("one", 1, 5, 0)], { fence: ann });
        for (const [events, fence] of [
          [[step("one", 2, 5, 0)], ann],
          [[step("one", 1, 6, 0)], ann],
          [[step("other", 1, 5, 0)], ann],
          [[step("one", 1, 5, 0), step("two")], ann],
          [[step("one", 1, 5, 0)], bob],
        ] as const) {
          const call = () => store.append("a", 2, events, { fence });
          expect(await refusal(fixture, call)).toBe("VERSION_CONFLICT");
          expect((await rejection(call())).message).not.toContain("somebody");
        }
        const ahead = await rejection(store.append("a", 9, [step("one")]));
        expect(ahead.message).toContain("The log is shorter than that");
      }),
    );

    test(
      "compares values, not their texts, so that a codec may encrypt",
      onExecutions(backend, async (fixture) => {
        let salt = 0;
        const salted = executions(fixture.database, {
          clock: fixture.clock,
          payload: {
            name: "salted",
            encode: (text) => `${(salt += 1)}|${text}`,
            decode: (text) => text.slice(text.indexOf("|") + 1),
            hash: "sha256",
          },
        });
        await salted.create({ id: "a", function: "f" });
        await twice(fixture, () => salted.append("a", 1, [step("s", [1, 2])]));
        expect(await refusal(fixture, () => salted.append("a", 1, [step("s", [1, 3])]))).toBe(
          "VERSION_CONFLICT",
        );
      }),
    );

    test(
      "takes a signal once, and answers with the one it took",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.signal("a", "go", "first", { key: "1" });
        await store.signal("a", "go", "second", { key: "2" });
        expect(await twice(fixture, () => store.receive("a", "go", 1, { call: 3 }))).toEqual({
          seq: 1,
          value: "first",
          nextVersion: 2,
        });
        expect(await refusal(fixture, () => store.receive("a", "go", 1, { call: 4 }))).toBe(
          "VERSION_CONFLICT",
        );
      }),
    );

    test(
      "is the same call for everything else that has an id or a key",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [delayRequested("Delay_a.n:x_1", T0 + 9)]);
        await store.create({ id: "x", function: "f", role: "external" });
        await store.pause("a");
        await store.unpause("a");
        await twice(fixture, () => store.setProgress("a", { n: 1 }));
        await twice(fixture, () => store.pauseDelay("Delay_a.n:x_1"));
        await twice(fixture, () => store.unpauseDelay("Delay_a.n:x_1"));
        await twice(fixture, () => store.addBacktraces("a", [{ from: 0, to: 1, stack: "at f" }]));
        const again = async (call: () => Promise<unknown>): Promise<void> => {
          await call();
          const before = await dump(fixture);
          await call();
          expect(await dump(fixture)).toEqual(before);
        };
        await again(() => store.create({ id: "c", function: "f", input: 1 }));
        await again(() => store.signal("a", "go", 1, { key: "once" }));
        await again(() => store.resolve("x", { kind: "timedOut" }));
        await again(() => store.cancelDelay("Delay_a.n:x_1"));
        await again(() => store.pause("a"));
        await again(() => store.unpause("a"));
        await again(() => store.cancel("a"));
      }),
    );
  });
}
