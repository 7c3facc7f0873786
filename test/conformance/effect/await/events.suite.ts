import { describe, expect, test } from "vitest";
import { awaitEvents, type AwaitReply } from "../../../../src/effects.ts";
import { inAwaitFixture, storedAwaits } from "./fixture.ts";
import type { AwaitFixture, InFixture } from "./fixture.ts";
import { rejection } from "../../backend.ts";
import type { Backend } from "../../backend.ts";

export function awaitEventsSuite(backend: Backend): void {
  const fixture = inAwaitFixture(backend);
  describe("an await-event", () => {
    identityTests(fixture);
    firstWinsTests(fixture);
    endTests(fixture);
    revokeTests(fixture);
    lostAnswerTests(fixture);
  });
}

function identityTests(fixture: InFixture): void {
  test(
    "[A82] has a stable id, token and due time, however often it is opened",
    fixture(async ({ database, clock, events, scope }) => {
      const first = await events.open(scope, "approval", {
        answerWithin: 500,
      });
      expect(first).toEqual({
        id: expect.stringMatching(/^await_[0-9a-f]{32}$/),
        token: expect.stringMatching(/^await_[0-9a-f]{32}\.[0-9a-f]{64}$/),
        dueAt: 1_500,
        existed: false,
      });
      clock.advance(100);
      const before = await storedAwaits(database);
      // Another process would make the same, and cannot move the due time.
      const again = await awaitEvents(database, { clock }).open(scope, "approval", {
        answerWithin: "1 day",
      });
      expect(again).toEqual({ ...first, existed: true });
      expect(await storedAwaits(database)).toEqual(before);
    }),
  );

  test(
    "shares nothing with those of another key, kind, scope or session, or of none",
    fixture(async ({ events, store, session, scope }) => {
      const other = `${session} other`;
      await store.create(other);
      const opened = await Promise.all([
        events.open(scope, "k"),
        events.open(scope, "l"),
        events.open({ ...scope, kind: "process" }, "k"),
        events.open({ ...scope, id: "t2" }, "k"),
        events.open({ ...scope, session: other }, "k"),
        events.open({ kind: "turn", id: "t1" }, "k"),
      ]);
      expect(new Set(opened.map(({ id }) => id)).size).toBe(6);
      const [first, , , , , last] = opened;
      await events.resolve(first.token, "first");
      await events.resolve(last.token, "last");
      expect(await events.wait(scope, "k")).toEqual({
        kind: "resolved",
        value: "first",
      });
      expect(await events.wait({ kind: "turn", id: "t1" }, "k")).toEqual({
        kind: "resolved",
        value: "last",
      });
      expect((await events.list(other)).items).toMatchObject([{ state: "open" }]);
      expect((await events.list(null)).items).toMatchObject([{ state: "resolved" }]);
    }),
  );

  test(
    "is opened in a transaction of one's own together with all else, or not at all",
    fixture(async ({ database, events, scope }) => {
      const prepared = events.open.prepare(scope, "k", { answerWithin: 5 });
      const open = (fails: boolean): Promise<string> =>
        database.write("mine", function* () {
          const opened = yield* prepared();
          if (fails) throw new Error("no");
          return opened.token;
        });
      const before = await storedAwaits(database);
      expect((await rejection(open(true))).message).toBe("no");
      expect(await storedAwaits(database)).toEqual(before);
      const token = await open(false);
      expect(await events.open(scope, "k")).toMatchObject({
        token,
        dueAt: 1_005,
        existed: true,
      });
      expect(await events.resolve(token, 1)).toEqual({ kind: "accepted" });
    }),
  );

  test(
    "[A82] of a session that was created again is another one",
    fixture(async ({ events, store, session, scope }) => {
      const { id, token } = await events.open(scope, "k");
      await store.delete(session);
      await store.create(session);
      const next = await events.open(scope, "k");
      expect(next.existed).toBe(false);
      expect(next.id).not.toBe(id);
      expect(await rejection(events.resolve(token, 1))).toMatchObject({
        code: "AWAIT_TOKEN_INVALID",
      });
      expect(await events.get(scope, "k")).toMatchObject({ state: "open" });
    }),
  );
}

function firstWinsTests(fixture: InFixture): void {
  test(
    "[A82] keeps an answer that comes before anybody waits",
    fixture(async ({ events, scope, clock }) => {
      const { token } = await events.open(scope, "k");
      expect(await events.resolve(token, { ok: [1, new Date(5)] })).toEqual({
        kind: "accepted",
      });
      clock.advance(1_000_000);
      const outcome = { kind: "resolved", value: { ok: [1, new Date(5)] } };
      expect(await events.wait(scope, "k", { timeout: 0 })).toEqual(outcome);
      expect(await events.wait(scope, "k", { timeout: 0 })).toEqual(outcome);
    }),
  );

  test(
    "[A82] is answered once: the same again is repeated, any other is told what won and changes nothing",
    fixture(async ({ database, events, scope }) => {
      const { token } = await events.open(scope, "k");
      await events.resolve(token, { b: 1, a: 2 });
      const before = await storedAwaits(database);
      expect(await events.resolve(token, { a: 2, b: 1 })).toEqual({
        kind: "replayed",
      });
      const late: AwaitReply = {
        kind: "late",
        outcome: { kind: "resolved", value: { b: 1, a: 2 } },
      };
      expect(await events.resolve(token, { a: 2 })).toEqual(late);
      expect(await events.fail(token, new Error("no"))).toEqual(late);
      expect(await events.cancel(scope, "k")).toEqual(late);
      expect(await storedAwaits(database)).toEqual(before);
    }),
  );

  test(
    "[A82] can be answered with an error, which whoever waits gets as data",
    fixture(async ({ database, events, scope }) => {
      const { token } = await events.open(scope, "k");
      const refused = (stack: string): Error =>
        Object.assign(new TypeError("refused"), { code: "NO", stack });
      expect(await events.fail(token, refused("here"))).toEqual({
        kind: "accepted",
      });
      const outcome = await events.wait(scope, "k");
      expect(outcome).toEqual({ kind: "failed", error: expect.any(TypeError) });
      expect(outcome).toMatchObject({
        error: { message: "refused", code: "NO" },
      });
      const before = await storedAwaits(database);
      expect(await events.fail(token, refused("there"))).toEqual({
        kind: "replayed",
      });
      expect(await events.fail(token, new Error("else"))).toMatchObject({
        kind: "late",
        outcome: { kind: "failed", error: { message: "refused" } },
      });
      // A value that looks like the error is not the error.
      expect(await events.resolve(token, { name: "TypeError", message: "refused" })).toMatchObject({
        kind: "late",
      });
      expect(await storedAwaits(database)).toEqual(before);
    }),
  );

  test(
    "[A82] that many answer at once is answered by exactly one of them",
    fixture(async ({ events, scope }) => {
      const { token } = await events.open(scope, "k");
      const replies = await Promise.all(
        [0, 1, 2, 3, 4, 5, 6, 7].map((value) => events.resolve(token, value)),
      );
      const winner = replies.findIndex(({ kind }) => kind === "accepted");
      expect(replies.filter(({ kind }) => kind === "accepted")).toHaveLength(1);
      for (const [value, reply] of replies.entries())
        if (value !== winner)
          expect(reply).toEqual({
            kind: "late",
            outcome: { kind: "resolved", value: winner },
          });
    }),
  );
}

function endTests(fixture: InFixture): void {
  test(
    "[A82] that is cancelled stays so, for who waits and for who answers",
    fixture(async ({ events, scope }) => {
      const { token } = await events.open(scope, "k");
      expect(await events.cancel(scope, "k")).toEqual({ kind: "accepted" });
      expect(await events.cancel(scope, "k")).toEqual({ kind: "replayed" });
      expect(await events.resolve(token, 1)).toEqual({
        kind: "late",
        outcome: { kind: "cancelled" },
      });
      expect(await events.wait(scope, "k")).toEqual({ kind: "cancelled" });
    }),
  );

  test(
    "[A82] times out at its instant and not before, whoever notices first, and for good",
    fixture(async ({ events, scope, clock }) => {
      const { token } = await events.open(scope, "k", { answerWithin: 100 });
      clock.set(1_099);
      expect(await events.get(scope, "k")).toMatchObject({ state: "open" });
      clock.set(1_100);
      expect(await events.resolve(token, 1)).toEqual({
        kind: "late",
        outcome: { kind: "timedOut" },
      });
      // A clock that is set back does not open it again.
      clock.set(1_000);
      expect(await events.resolve(token, 1)).toMatchObject({ kind: "late" });
      expect(await events.wait(scope, "k")).toEqual({ kind: "timedOut" });
      expect(await events.get(scope, "k")).toMatchObject({
        state: "timedOut",
        settledAt: 1_100,
      });
    }),
  );

  test(
    "[A82] whose time was seen to be over by a look has timed out, also when the clock is set back then",
    fixture(async ({ events, scope, clock }) => {
      const { token } = await events.open(scope, "k", { answerWithin: 100 });
      clock.set(5_000);
      expect(await events.get(scope, "k")).toMatchObject({
        state: "timedOut",
        settledAt: 1_100,
        outcome: { kind: "timedOut" },
      });
      clock.set(1_000);
      expect(await events.resolve(token, 1)).toEqual({
        kind: "late",
        outcome: { kind: "timedOut" },
      });
    }),
  );

  test(
    "[A82] with no time at all is over on arrival, and one with too much of it ends with time itself",
    fixture(async ({ events, scope }) => {
      await events.open(scope, "none", { answerWithin: 0 });
      expect(await events.wait(scope, "none")).toEqual({ kind: "timedOut" });
      const { dueAt } = await events.open(scope, "all", {
        answerWithin: Number.MAX_SAFE_INTEGER,
      });
      expect(dueAt).toBe(8.64e15);
    }),
  );

  test(
    "that was never opened can be neither awaited nor ended, and reads as absent",
    fixture(async ({ database, events, scope }) => {
      const before = await storedAwaits(database);
      for (const attempt of [
        () => events.wait(scope, "none"),
        () => events.cancel(scope, "none"),
        () => events.revoke(scope, "none"),
      ])
        expect(await rejection(attempt())).toMatchObject({
          code: "AWAIT_EVENT_NOT_FOUND",
          details: { scopeKind: "turn", scope: "t1", key: "none" },
        });
      expect(await events.get(scope, "none")).toBeUndefined();
      expect(await storedAwaits(database)).toEqual(before);
    }),
  );
}

function revokeTests(fixture: InFixture): void {
  test(
    "[A82] that is revoked can be neither answered nor awaited nor opened again",
    fixture(async ({ database, events, scope }) => {
      const { token } = await events.open(scope, "k");
      expect(await events.revoke(scope, "k")).toEqual({ kind: "accepted" });
      expect(await events.revoke(scope, "k")).toEqual({ kind: "replayed" });
      const before = await storedAwaits(database);
      expect(await rejection(events.resolve(token, 1))).toMatchObject({
        code: "AWAIT_TOKEN_INVALID",
        details: {},
      });
      expect(await rejection(events.wait(scope, "k"))).toMatchObject({
        code: "AWAIT_EVENT_REVOKED",
      });
      expect(await rejection(events.open(scope, "k"))).toMatchObject({
        code: "AWAIT_EVENT_REVOKED",
      });
      expect(await events.cancel(scope, "k")).toEqual({
        kind: "late",
        outcome: undefined,
      });
      expect(await storedAwaits(database)).toEqual(before);
      expect(await events.get(scope, "k")).toMatchObject({
        state: "revoked",
        revokedAt: 1_000,
        outcome: undefined,
      });
    }),
  );

  test(
    "[A82] that was answered and then revoked keeps its outcome, and its token answers nothing more",
    fixture(async ({ events, scope }) => {
      const { token } = await events.open(scope, "k");
      await events.resolve(token, 1);
      expect(await events.revoke(scope, "k")).toEqual({
        kind: "late",
        outcome: { kind: "resolved", value: 1 },
      });
      expect(await rejection(events.resolve(token, 1))).toMatchObject({
        code: "AWAIT_TOKEN_INVALID",
      });
      expect(await events.wait(scope, "k")).toMatchObject({ value: 1 });
      expect(await events.open(scope, "k")).toMatchObject({ existed: true });
    }),
  );

  test(
    "[A82] is revoked with all of its session or of its scope, in slices",
    fixture(async ({ events, session, scope, clock }) => {
      const keys = ["a", "b", "c"];
      const tokens: string[] = [];
      for (const key of keys) tokens.push((await events.open(scope, key)).token);
      await events.open(scope, "over", { answerWithin: 5 });
      clock.advance(5);
      const other = { ...scope, id: "t2" };
      const kept = await events.open(other, "a");
      const ofScope = { kind: "turn", id: "t1" };
      expect(await events.revokeAll(session, { scope: ofScope, rowsPerSlice: 2 })).toEqual({
        revoked: 4,
      });
      for (const token of tokens)
        expect(await rejection(events.resolve(token, 1))).toMatchObject({
          code: "AWAIT_TOKEN_INVALID",
        });
      // Its time was over before.
      expect(await events.wait(scope, "over")).toEqual({ kind: "timedOut" });
      expect(await events.resolve(kept.token, 1)).toEqual({ kind: "accepted" });
      expect(await events.revokeAll(session)).toEqual({ revoked: 1 });
      expect(await events.revokeAll(session)).toEqual({ revoked: 0 });
      expect(await events.wait(other, "a")).toMatchObject({ value: 1 });
    }),
  );
}

/** Every write whose answer was lost may be made again. */
function lostAnswerTests(fixture: InFixture): void {
  const lost = async ({ faults }: AwaitFixture, call: () => Promise<unknown>): Promise<void> => {
    faults.losesAnswer = true;
    expect(await rejection(call())).toMatchObject({ code: "OUTCOME_UNKNOWN" });
  };

  test(
    "may be opened, answered, cancelled and revoked again after the answer was lost",
    fixture(async (at) => {
      const { events, scope } = at;
      await lost(at, () => events.open(scope, "k", { answerWithin: 50 }));
      const { token, existed } = await events.open(scope, "k");
      expect(existed).toBe(true);
      await lost(at, () => events.resolve(token, 1));
      expect(await events.resolve(token, 1)).toEqual({ kind: "replayed" });
      await events.open(scope, "l");
      await lost(at, () => events.cancel(scope, "l"));
      expect(await events.cancel(scope, "l")).toEqual({ kind: "replayed" });
      await events.open(scope, "m");
      await lost(at, () => events.revoke(scope, "m"));
      expect(await events.revoke(scope, "m")).toEqual({ kind: "replayed" });
    }),
  );
}
