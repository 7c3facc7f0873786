import { describe, expect, test } from "vitest";
import { elsewhere, inAwaitFixture } from "./fixture.ts";
import type { AwaitFixture, InFixture } from "./fixture.ts";
import { rejection } from "../../backend.ts";
import type { Backend } from "../../backend.ts";
import { until } from "../../lease/leased-sessions.ts";
import { isOpen } from "../../wait-fixture.ts";

/** A day, so that no wait can end by its timeout unless the test moves the clock. */
const timeout = "1 day";

export function awaitWaitsSuite(backend: Backend): void {
  const fixture = inAwaitFixture(backend);
  describe("waiting for an await-event", () => {
    waitTests(fixture);
    givenUpTests(fixture);
    if (backend.survives) elsewhereTests(fixture);
  });
}

/** Waits until the waiter sleeps on the clock: its timeout, at least. */
async function waiting(
  { events, scope, clock, faults }: AwaitFixture,
  key = "k",
): Promise<{ readonly promise: ReturnType<AwaitFixture["events"]["wait"]> }> {
  const promise = events.wait(scope, key, { timeout });
  promise.catch(() => undefined);
  await faults.asleep(clock);
  expect(await isOpen(promise)).toBe(true);
  return { promise };
}

function waitTests(fixture: InFixture): void {
  test(
    "[A82] ends when it is answered, and not when another one is",
    fixture(async (at) => {
      const { events, scope, clock, faults } = at;
      const { token } = await events.open(scope, "k");
      const other = await events.open(scope, "other");
      const { promise } = await waiting(at);
      await events.resolve(other.token, "other");
      expect(await isOpen(promise)).toBe(true);
      await events.resolve(token, "hello");
      expect(await promise).toEqual({ kind: "resolved", value: "hello" });
      expect([clock.sleepers, faults.listeners]).toEqual([0, 0]);
    }),
  );

  test(
    "[A82] ends for all who wait, when it is cancelled too",
    fixture(async ({ events, scope, clock, faults }) => {
      await events.open(scope, "k");
      const all = [1, 2, 3].map(() => events.wait(scope, "k", { timeout }));
      await faults.asleep(clock, 3);
      await events.cancel(scope, "k");
      expect(await Promise.all(all)).toEqual([
        { kind: "cancelled" },
        { kind: "cancelled" },
        { kind: "cancelled" },
      ]);
    }),
  );

  test(
    "[A82] sleeps exactly until its time is over, without asking before",
    fixture(async (at) => {
      const { events, scope, clock, faults } = at;
      await events.open(scope, "k", { answerWithin: 500 });
      const { promise } = await waiting(at);
      const { writes } = faults;
      clock.advance(499);
      expect(await isOpen(promise)).toBe(true);
      expect(faults.writes).toBe(writes);
      clock.advance(1);
      expect(await promise).toEqual({ kind: "timedOut" });
      expect(clock.sleepers).toBe(0);
    }),
  );

  test(
    "[A82] fails when it is revoked, and when its session is deleted",
    fixture(async (at) => {
      const { events, scope, store, session } = at;
      await events.open(scope, "k");
      const first = await waiting(at);
      await events.revoke(scope, "k");
      expect(await rejection(first.promise)).toMatchObject({
        code: "AWAIT_EVENT_REVOKED",
      });
      await events.open(scope, "l");
      const second = await waiting(at, "l");
      await store.delete(session);
      expect(await rejection(second.promise)).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
    }),
  );

  test(
    "never ends with the answer of the next generation of its session",
    fixture(async (at) => {
      const { events, scope, store, session, database } = at;
      await events.open(scope, "k");
      const { promise } = await waiting(at);
      // All in one go: the waiter looks for the first time when it is over.
      const slow = store.delete(session);
      await slow;
      await store.create(session);
      await events.open(scope, "k");
      expect((await rejection(promise)).code).toMatch(
        /^(SESSION_NOT_FOUND|AWAIT_EVENT_NOT_FOUND)$/,
      );
      expect(database.stats().polls).toBe(0);
    }),
  );
}

function givenUpTests(fixture: InFixture): void {
  test(
    "can be given up by a signal or after a time, and leaves it open",
    fixture(async (at) => {
      const { events, scope, clock, faults } = at;
      const { token } = await events.open(scope, "k");
      const controller = new AbortController();
      const { signal } = controller;
      const aborted = rejection(events.wait(scope, "k", { signal }));
      await until(() => faults.listeners === 1);
      controller.abort("enough");
      expect(await aborted).toMatchObject({ code: "ABORTED", cause: "enough" });
      const late = rejection(events.wait(scope, "k", { timeout: 10 }));
      await faults.asleep(clock);
      clock.advance(10);
      const error = await late;
      expect(error).toMatchObject({ code: "DEADLINE_EXCEEDED" });
      expect(error.message).toContain('await-event "k" of turn "t1"');
      expect([clock.sleepers, faults.listeners]).toEqual([0, 0]);
      expect(await events.resolve(token, 1)).toEqual({ kind: "accepted" });
      // What is there already wins against a timeout that is over.
      expect(await events.wait(scope, "k", { timeout: 0 })).toMatchObject({
        value: 1,
      });
    }),
  );

  test(
    "ends when the clock, set back meanwhile, comes to its instant again",
    fixture(async (at) => {
      const { events, scope, clock } = at;
      await events.open(scope, "k", { answerWithin: 500 });
      const { promise } = await waiting(at);
      clock.set(200);
      clock.advance(500);
      expect(await isOpen(promise)).toBe(true);
      clock.set(1_500);
      expect(await promise).toEqual({ kind: "timedOut" });
    }),
  );
}

function elsewhereTests(fixture: InFixture): void {
  test(
    "[A82] ends when another process answers, and its token is good there",
    fixture(async (at) => {
      const theirs = await elsewhere(at);
      const { token } = await at.events.open(at.scope, "k");
      const { promise } = await waiting(at);
      expect(await theirs.events.resolve(token, { from: "there" })).toEqual({
        kind: "accepted",
      });
      expect(await promise).toEqual({
        kind: "resolved",
        value: { from: "there" },
      });
      expect(await theirs.events.open(at.scope, "k")).toMatchObject({
        token,
        existed: true,
      });
      expect(at.database.stats().polls).toBe(0);
    }),
  );

  test(
    "[A82] two processes that answer at once: exactly one wins, and both tell the same",
    fixture(async (at) => {
      const theirs = await elsewhere(at);
      for (let round = 0; round < 10; round += 1) {
        const key = `k${round}`;
        const { token } = await at.events.open(at.scope, key);
        const replies = await Promise.all([
          at.events.resolve(token, "here"),
          theirs.events.resolve(token, "there"),
        ]);
        const kinds = replies.map(({ kind }) => kind);
        expect(kinds.toSorted()).toEqual(["accepted", "late"]);
        const won = kinds[0] === "accepted" ? "here" : "there";
        expect(replies).toContainEqual({
          kind: "late",
          outcome: { kind: "resolved", value: won },
        });
        expect(await at.events.wait(at.scope, key)).toMatchObject({
          value: won,
        });
      }
    }),
  );
}
