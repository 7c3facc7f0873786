import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { childRequested, joinNext, step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  byAnn,
  dump,
  kindsOf,
  onExecutions,
  refusal,
  responsesOf,
  standing,
} from "./fixture.ts";

export function executionSignalsSuite(backend: Backend): void {
  describe("signals", () => {
    test(
      "are kept when nobody waits, and taken once each, in the order in which they came",
      onExecutions(backend, async ({ store }) => {
        await store.create({ id: "a", function: "f" });
        expect(await store.signal("a", "go", { n: 1 })).toEqual({
          seq: 1,
          existed: false,
        });
        await store.signal("a", "stop", "other name");
        await store.signal("a", "go", { n: 2 });
        expect(await store.receive("a", "go", 1)).toEqual({
          seq: 1,
          value: { n: 1 },
          nextVersion: 2,
        });
        expect(await store.receive("a", "go", 2)).toEqual({
          seq: 3,
          value: { n: 2 },
          nextVersion: 3,
        });
        expect(await store.receive("a", "stop", 3)).toEqual({
          seq: 2,
          value: "other name",
          nextVersion: 4,
        });
      }),
    );

    test(
      "asking for one that has not come records nothing",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.signal("a", "other", 1);
        const before = await dump(fixture);
        expect(await store.receive("a", "go", 1)).toBeUndefined();
        expect(await dump(fixture)).toEqual(before);
      }),
    );

    test(
      "sent twice under one key is sent once; another value under it is a conflict",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.signal("a", "go", { x: 1, y: 2 }, { key: "k" });
        const before = await dump(fixture);
        expect(await store.signal("a", "go", { y: 2, x: 1 }, { key: "k" })).toEqual({
          seq: 1,
          existed: true,
        });
        expect(await dump(fixture)).toEqual(before);
        expect(await refusal(fixture, () => store.signal("a", "go", { x: 2 }, { key: "k" }))).toBe(
          "SIGNAL_CONFLICT",
        );
        // The key is the signal's own: another name may use it.
        expect(await store.signal("a", "stop", 3, { key: "k" })).toEqual({
          seq: 2,
          existed: false,
        });
      }),
    );

    test(
      "without a key each is a new one, also with an equal value",
      onExecutions(backend, async (fixture) => {
        await fixture.store.create({ id: "a", function: "f" });
        await fixture.store.signal("a", "go", 1);
        await fixture.store.signal("a", "go", 1);
        expect(await responsesOf(fixture, "a")).toHaveLength(2);
      }),
    );

    test(
      "many sent at once are all kept, numbered without gaps",
      onExecutions(backend, async (fixture) => {
        await fixture.store.create({ id: "a", function: "f" });
        await Promise.all(
          Array.from({ length: 40 }, (_, n) =>
            fixture.store.signal("a", n % 2 === 0 ? "go" : "stop", n),
          ),
        );
        const seqs = (await responsesOf(fixture, "a")).map(([seq]) => seq);
        expect(seqs).toEqual(Array.from({ length: 40 }, (_, n) => n + 1));
      }),
    );

    test(
      "one that has finished takes none, but knows those it had",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.signal("a", "go", 1, { key: "k" });
        await store.finish("a", 1, { kind: "completed", value: null });
        expect(await store.signal("a", "go", 1, { key: "k" })).toEqual({
          seq: 1,
          existed: true,
        });
        for (const call of [
          () => store.signal("a", "go", 2, { key: "k" }),
          () => store.signal("a", "go", 1),
          () => store.receive("a", "go", 1),
        ])
          expect(await refusal(fixture, call)).toBe("EXECUTION_FINISHED");
        for (const call of [
          () => store.signal("nobody", "go", 1),
          () => store.receive("nobody", "go", 1),
        ])
          expect(await refusal(fixture, call)).toBe("EXECUTION_NOT_FOUND");
      }),
    );

    test(
      "taking one is an event with the call it belongs to, at the right version and in the right hands",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.signal("a", "go", 1);
        await store.lock("a", 1, byAnn);
        const error = await rejection(store.receive("a", "go", 7));
        expect(error.code).toBe("VERSION_CONFLICT");
        await store.receive("a", "go", 2, { fence: ann, call: 9, seen: 1 });
        expect(await kindsOf(fixture, "a")).toBe("created locked signalReceived");
        await store.unlock("a", 3, { holder: ann, reason: "again" });
        expect(await store.lock("a", 4, byAnn)).toMatchObject({
          history: [
            {
              version: 2,
              event: {
                kind: "signalReceived",
                signal: "go",
                seq: 1,
                call: 9,
                seen: 1,
              },
            },
          ],
        });
      }),
    );

    test(
      "they do not answer a question to a join set",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [joinNext("n:x", T0)]);
        await store.signal("a", "go", 1);
        expect((await standing(fixture, "a")).pending.kind).toBe("blocked");
      }),
    );
  });

  waits(backend);
}

function waits(backend: Backend): void {
  describe("waiting for any response", () => {
    test(
      "blocks when all have been seen, and any set or signal ends that",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append(
          "a",
          1,
          [
            childRequested("n:x", "a.n:x_1", "g"),
            childRequested("n:y", "a.n:y_1", "g"),
            waiting(0, T0),
          ],
          {
            children: ["a.n:x_1", "a.n:y_1"].map((id) => ({
              id,
              function: "g",
            })),
          },
        );
        expect((await standing(fixture, "a")).pending).toEqual({
          kind: "blocked",
          on: { kind: "responses", seen: 0 },
          leaseUntil: null,
          lastLock: null,
        });
        let version = 4;
        for (const [n, respond] of [
          () => store.finish("a.n:y_1", 1, { kind: "timedOut" }),
          () => store.signal("a", "go", 1),
          () => store.finish("a.n:x_1", 1, { kind: "timedOut" }),
        ].entries()) {
          clock.set(T0 + 10 * (n + 1));
          await respond();
          expect((await standing(fixture, "a")).pending).toMatchObject({
            kind: "pending",
            dueAt: T0 + 10 * (n + 1),
          });
          await store.append("a", version, [waiting(n + 1, T0)]);
          expect((await standing(fixture, "a")).pending).toMatchObject({
            kind: "blocked",
            on: { kind: "responses", seen: n + 1 },
          });
          version += 1;
        }
      }),
    );

    test(
      "does not block when one has come that was not seen; its time is the first such one's",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        for (const n of [1, 2, 3]) {
          clock.set(T0 + n);
          await store.signal("a", "go", n);
        }
        await store.append("a", 1, [waiting(1, T0)]);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 2,
          leaseUntil: null,
        });
      }),
    );

    test(
      "a worker that keeps the run in memory stays the only one until its run expires",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [waiting(0, T0 + 1_000)], { fence: ann });
        clock.advance(10);
        await store.signal("a", "go", 1);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 1_000,
          leaseUntil: T0 + 1_000,
        });
        await store.append("a", 3, [step("mine")], { fence: ann });
        await store.append("a", 4, [waiting(1, T0 + 1_000)], { fence: ann });
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "blocked",
          on: { kind: "responses", seen: 1 },
          leaseUntil: T0 + 1_000,
        });
      }),
    );
  });
}
