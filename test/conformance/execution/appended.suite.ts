import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { parseExecutionId } from "../../../src/model/ids/execution-id.ts";
import { parseFunctionName } from "../../../src/model/ids/function-name.ts";
import { pendingWork, timerSet } from "../../../src/stores/execution/topics.ts";
import type { Backend } from "../backend.ts";
import { childRequested, step } from "./execution-events.ts";
import {
  T0,
  ann,
  bob,
  byAnn,
  byBob,
  dump,
  kindsOf,
  lockedIds,
  onExecutions,
  refusal,
  standing,
} from "./fixture.ts";

const child = "a.n:x_1";
const requested = childRequested("n:x", child, "g");
const done = { kind: "completed", value: 1 } as const;

function scheduled(id: string): GivenEvent {
  return {
    kind: "scheduled",
    execution: parseExecutionId(id),
    function: parseFunctionName("g"),
    startAt: "now",
  };
}

export function executionAppendedSuite(backend: Backend): void {
  describe("what an append answers", () => {
    test(
      "[R15] is the instant that it recorded, also when it is made again",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        clock.set(T0 + 7);
        const append = () => store.append("a", 1, [step("s")]);
        expect(await append()).toEqual({ nextVersion: 2, at: T0 + 7 });
        clock.set(T0 + 9);
        expect(await append()).toEqual({ nextVersion: 2, at: T0 + 7 });
        expect(await store.finish("a", 2, done)).toEqual({
          nextVersion: 2,
          at: T0 + 9,
        });
        expect((await store.event("a", 2)).at).toBe(T0 + 9);
      }),
    );

    test(
      "[R15] names the parent that was told of the end, and as which response",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "p", function: "f" });
        const ids = ["p.n:x_1", "p.n:x_2"] as const;
        for (const id of ids) await store.create({ id, function: "g" });
        await store.signal("p", "go", 1);
        const ends = async () => {
          const answers = await Promise.all([
            store.finish(ids[0], 1, done),
            store.append(ids[1], 1, [step("last"), { kind: "finished", result: done }]),
          ]);
          return answers.map(({ parent }) => parent);
        };
        const told = await ends();
        expect(told.map((parent) => parent?.id)).toEqual(["p", "p"]);
        expect(new Set(told.map((parent) => parent?.seq))).toEqual(new Set([2, 3]));
        expect(await ends()).toEqual(told);
        const { items } = await store.responses("p");
        ids.forEach((id, index) => {
          const answer = items.find(({ seq }) => seq === told[index]?.seq);
          expect(answer?.response).toMatchObject({ kind: "child", child: id });
        });
      }),
    );
  });

  describe("a child that is created locked", () => {
    test(
      "[R15] comes with the append, for its worker, and is due to nobody",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await store.createLocked({ id: "a", function: "f" }, byAnn);
        clock.set(T0 + 5);
        const heard: string[] = [];
        const stop = database.subscribe((hint) => {
          if (hint.kind === "change") heard.push(`${hint.operation} ${hint.key}`);
        });
        const locked = { ...byAnn, codeVersion: "v1" };
        const append = () =>
          store.append("a", 2, [requested], {
            fence: ann,
            children: [{ id: child, function: "g", input: { n: 1 }, locked }],
          });
        const first = await append();
        stop();
        expect(heard).toContain(`${timerSet} ${child}`);
        expect(heard).not.toContain(`${pendingWork} g`);
        expect(first).toMatchObject({
          nextVersion: 3,
          at: T0 + 5,
          lockedChildren: [
            {
              id: child,
              input: { n: 1 },
              nextVersion: 2,
              holder: { ...ann, owner: database.owner },
              leaseUntil: T0 + 1_005,
              history: [],
            },
          ],
        });
        expect(await kindsOf(fixture, child)).toBe("created locked");
        expect(await lockedIds(store, 9, "g")).toEqual([]);
        // Made again, it gives the lock as it stands.
        const before = await dump(fixture);
        clock.set(T0 + 6);
        expect(await append()).toEqual(first);
        expect(await dump(fixture)).toEqual(before);
        await store.append(child, 2, [step("s")], { fence: ann });
        expect((await append()).lockedChildren).toMatchObject([
          { nextVersion: 3, history: [{ version: 2 }] },
        ]);
        await store.unlock(child, 3, { holder: ann, reason: "busy" });
        await store.lock(child, 4, byBob);
        expect(await append()).toEqual({ nextVersion: 3, at: T0 + 5 });
      }),
    );

    test(
      "[R15] may be a run that is started beside, if it was not there",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "there", function: "g" });
        const locked = { holder: bob, lease: 100 };
        expect(
          await store.append("a", 1, [scheduled("beside"), scheduled("there")], {
            children: [
              { id: "beside", function: "g", locked },
              { id: "there", function: "g", locked },
            ],
          }),
        ).toMatchObject({
          scheduled: [{ outcome: "created" }, { outcome: "existed" }],
          lockedChildren: [{ id: "beside" }],
        });
        expect((await standing(fixture, "there")).pending.kind).toBe("pending");
      }),
    );

    test.each([
      ["LOCK_NOT_DUE", { startAt: { in: 5 } }],
      ["EXECUTION_PAUSED", { isPaused: true }],
      ["LOCK_BLOCKED", { role: "external" }],
      ["LOCK_EXPIRY_INVALID", { locked: { holder: ann, lease: 0 } }],
      ["OPTION_INVALID", { locked: { holder: ann, lease: 1, signal: null } }],
    ] as const)("[R15] that cannot be locked fails the append: %s", (code, options) =>
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const draft = { id: child, function: "g", locked: byAnn, ...options };
        expect(
          await refusal(fixture, () =>
            store.append("a", 1, [step("quiet"), requested], {
              children: [draft as never],
            }),
          ),
        ).toBe(code);
      })(),
    );
  });
}
