import { describe, expect, test } from "vitest";
import { type OwnerId, run, type Tx, sql } from "../../../src/kernel.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { createSession } from "../lease/leased-sessions.ts";
import { ask, held, inEffects, refused, storedEffects, turn } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

/** The steps of an effect one by one: claim, renew, finish, give back. */
export function effectClaimsSuite(backend: Backend): void {
  const fixture = inEffects(backend);
  describe("claiming an effect", () => {
    claimTests(fixture);
  });
  describe("taking over an effect", () => {
    takeoverTests(fixture);
  });
  describe("the claim of an effect", () => {
    holdTests(fixture);
    expiredReleaseTests(fixture);
  });
  describe("an effect whose key is used again", () => {
    conflictTests(fixture);
  });
}

function claimTests(fixture: InFixture): void {
  test(
    "gives it to one, and tells the others who has it, without the token",
    fixture(async (at) => {
      const { effects, database } = at;
      const claim = await held(at, "k");
      expect(claim).toMatchObject({
        scope: { kind: "turn", id: "t1", session: { id: "s" } },
        replayKey: "k",
        attempt: 1,
        fence: 1,
        claimedAt: 1_000,
        expiresAt: 31_000,
        dueAt: null,
      });
      const before = await storedEffects(database);
      expect(await effects.claim(turn, "k", ask)).toEqual({
        kind: "busy",
        holder: {
          process: database.owner,
          fence: 1,
          claimedAt: 1_000,
          expiresAt: 31_000,
        },
      });
      expect(await storedEffects(database)).toEqual(before);
    }),
  );

  test(
    "stores the envelope in canonical form, readable with a shell",
    fixture(async ({ effects, database }) => {
      const envelope = { input: { b: 1, a: [2] }, kind: "tool" };
      await effects.claim(turn, "k", envelope);
      expect(await storedEffects(database)).toMatchObject([
        {
          scope_kind: "turn",
          scope: "t1",
          replay_key: "k",
          attempt: 1,
          kind: "tool",
          envelope: '{"input":{"a":[2],"b":1},"kind":"tool"}',
          status: "inProgress",
          outcome: null,
        },
      ]);
    }),
  );

  test(
    "answers with what is recorded, value or error, from then on",
    fixture(async (at) => {
      const { effects, clock } = at;
      const done = await held(at, "done");
      await effects.complete(done, { text: "hi" });
      const failed = await held(at, "failed");
      const error = Object.assign(new RangeError("too much"), { code: "E42" });
      await effects.fail(failed, error, { isTransient: true });
      clock.advance(1_000_000);
      expect(await effects.claim(turn, "done", ask)).toEqual({
        kind: "completed",
        value: { text: "hi" },
      });
      const answer = await effects.claim(turn, "failed", ask);
      expect(answer).toMatchObject({
        kind: "failed",
        isTransient: true,
        error: { name: "RangeError", message: "too much", code: "E42" },
      });
    }),
  );

  test(
    "[AX7] keeps scopes of other sessions, kinds and ids apart, with equal ids too",
    fixture(async ({ effects, database }) => {
      await createSession(database, "other");
      const scopes = [
        { kind: "turn", session: "s", id: "x" },
        { kind: "turn", session: "other", id: "x" },
        { kind: "drain", session: "s", id: "x" },
        { kind: "process", id: "x" },
        { kind: "turn", id: "x" },
        { kind: "turn", session: "s", id: "y" },
      ];
      for (const [index, scope] of scopes.entries())
        await effects.execute(scope, "k", ask, () => index);
      for (const [index, scope] of scopes.entries())
        expect(await effects.replay(scope, "k", ask)).toBe(index);
      expect(await storedEffects(database)).toHaveLength(6);
    }),
  );

  test(
    "is had again by who repeats it with its token, should the answer have been lost",
    fixture(async (at) => {
      const { effects, faults, clock } = at;
      const token = "0123456789abcdef";
      faults.losesAnswer = true;
      expect(await rejection(effects.claim(turn, "k", ask, { token }))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      clock.advance(10);
      const again = await effects.claim(turn, "k", ask, { token });
      expect(again).toMatchObject({
        kind: "claimed",
        claim: { fence: 1, claimedAt: 1_000, expiresAt: 31_000 },
      });
      expect(await effects.claim(turn, "k", ask)).toMatchObject({
        kind: "busy",
      });
    }),
  );
}

function takeoverTests(fixture: InFixture): void {
  test(
    "comes with the end of the lease, at its last instant, and keeps the due time",
    fixture(async (at) => {
      const { effects, clock } = at;
      const options = { lease: 100, delay: 50 };
      expect(await effects.claim(turn, "k", ask, options)).toEqual({
        kind: "notDue",
        dueAt: 1_050,
      });
      clock.advance(49);
      expect(await effects.claim(turn, "k", ask, { lease: 100 })).toEqual({
        kind: "notDue",
        dueAt: 1_050,
      });
      clock.advance(1);
      expect(await effects.claim(turn, "k", ask, options)).toMatchObject({
        kind: "claimed",
        claim: { fence: 1, dueAt: 1_050, expiresAt: 1_150 },
      });
      clock.advance(99);
      expect(await effects.claim(turn, "k", ask)).toMatchObject({
        kind: "busy",
      });
      clock.advance(1);
      expect(await effects.claim(turn, "k", ask, options)).toMatchObject({
        kind: "claimed",
        claim: { fence: 2, dueAt: 1_050, claimedAt: 1_150 },
      });
    }),
  );

  test(
    "comes at once when the holder that was seen has died, for one of those who saw it",
    fixture(async (at) => {
      const { effects, faults, database } = at;
      const { fence } = await held(at, "k");
      const process = database.owner;
      const observed = { process, fence };
      expect(await effects.reclaim(turn, "k", ask, observed)).toMatchObject({
        kind: "busy",
      });
      faults.die(process);
      expect(await effects.claim(turn, "k", ask)).toMatchObject({
        kind: "busy",
      });
      expect(await effects.reclaim(turn, "k", ask, observed)).toMatchObject({
        kind: "claimed",
        claim: { fence: 2 },
      });
      expect(await effects.reclaim(turn, "k", ask, observed)).toMatchObject({
        kind: "busy",
        holder: { fence: 2 },
      });
      const elsewhere = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAW" as OwnerId;
      expect(
        await effects.reclaim(turn, "k", ask, {
          process: elsewhere,
          fence: 2,
        }),
      ).toMatchObject({ kind: "busy" });
    }),
  );

  test(
    "a claim of no time at all is dead on arrival",
    fixture(async (at) => {
      await held(at, "k", 0);
      expect((await held(at, "k", 0)).fence).toBe(2);
    }),
  );
}

function holdTests(fixture: InFixture): void {
  test(
    "is extended by renewing, and never gets shorter",
    fixture(async (at) => {
      const { effects, clock } = at;
      const claim = await held(at, "k", 100);
      clock.advance(50);
      const renewed = await effects.renew(claim, { lease: 100 });
      expect(renewed).toEqual({ ...claim, expiresAt: 1_150 });
      expect(await effects.renew(claim, { lease: 10 })).toEqual(renewed);
      clock.set(100);
      expect(await effects.renew(claim, { lease: 10 })).toEqual(renewed);
    }),
  );

  test(
    "settles the effect once: the same claim may say it again, and the first time counts",
    fixture(async (at) => {
      const { effects, database, faults } = at;
      const claim = await held(at, "k");
      faults.losesAnswer = true;
      expect(await rejection(effects.complete(claim, 1))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      const before = await storedEffects(database);
      await effects.complete(claim, 1);
      await effects.complete(claim, 2);
      await effects.fail(claim, new Error("late"));
      expect(await storedEffects(database)).toEqual(before);
      expect(await effects.replay(turn, "k", ask)).toBe(1);
      expect(await effects.release(claim)).toBe(false);
      expect(await refused(at, () => effects.renew(claim))).toMatchObject({
        code: "EFFECT_LEASE_LOST",
      });
    }),
  );

  test(
    "[A79] counts no more when somebody took over, and changes nothing then",
    fixture(async (at) => {
      const { effects, clock } = at;
      const old = await held(at, "k", 100);
      clock.advance(100);
      const claim = await held(at, "k");
      for (const call of [
        () => effects.renew(old),
        () => effects.complete(old, "stale"),
        () => effects.fail(old, new Error("stale")),
        () => effects.complete({ ...claim, token: old.token }, "stale"),
        () => effects.complete({ ...old, token: claim.token }, "stale"),
      ])
        expect(await refused(at, call)).toMatchObject({
          code: "EFFECT_LEASE_LOST",
          retryable: true,
          details: { replayKey: "k", reason: "overtaken" },
        });
      expect(await effects.release(old)).toBe(false);
      await effects.complete(claim, "fresh");
      expect(await refused(at, () => effects.complete(old, "stale"))).toMatchObject({
        code: "EFFECT_LEASE_LOST",
      });
      expect(await effects.replay(turn, "k", ask)).toBe("fresh");
    }),
  );

  test(
    "[A79] that has run out does not settle the effect, nor does setting the clock back revive it",
    fixture(async (at) => {
      const { effects, clock } = at;
      const claim = await held(at, "k", 100);
      clock.advance(100);
      const lost = {
        code: "EFFECT_LEASE_LOST",
        details: { reason: "expired" },
      };
      expect(await rejection(effects.complete(claim, 1))).toMatchObject(lost);
      clock.set(1_000);
      expect(await rejection(effects.complete(claim, 1))).toMatchObject(lost);
      expect(await rejection(effects.renew(claim))).toMatchObject(lost);
      expect((await held(at, "k")).fence).toBe(2);
    }),
  );

  test(
    "[A79] that has run out is ended for good by a prepared call too, which takes all beside it back",
    fixture(async (at) => {
      const { effects, clock, database } = at;
      const claim = await held(at, "k", 100);
      const complete = effects.complete.prepare(claim, 1);
      clock.advance(100);
      const lost = {
        code: "EFFECT_LEASE_LOST",
        details: { reason: "expired" },
      };
      const mine = database.write(
        "mine",
        function* () {
          yield* run(sql`UPDATE holdfast_effect SET kind = 'other'`);
          yield* complete();
        },
        { isolation: "readCommitted" },
      );
      expect(await rejection(mine)).toMatchObject(lost);
      clock.set(1_000);
      expect(await rejection(effects.complete(claim, 1))).toMatchObject(lost);
      expect(await effects.get(turn, "k")).toMatchObject({ kind: ask.kind });
      expect((await held(at, "k")).fence).toBe(2);
    }),
  );

  test(
    "settles the effect in a transaction of one's own, which may be run again",
    fixture(async (at) => {
      const { effects, database } = at;
      const complete = effects.complete.prepare(await held(at, "k"), "done");
      const all = function* (): Tx<void> {
        yield* run(sql`UPDATE holdfast_effect SET kind = 'mine'`);
        yield* complete();
      };
      await database.write("mine", all, { isolation: "readCommitted" });
      await database.write("mine", all, { isolation: "readCommitted" });
      expect(await effects.get(turn, "k")).toMatchObject({
        kind: "mine",
        state: { kind: "completed", value: "done" },
      });
    }),
  );

  test(
    "can be given back, once, and the next who comes has it at once",
    fixture(async (at) => {
      const { effects } = at;
      const claim = await held(at, "k");
      expect(await effects.release(claim)).toBe(true);
      expect(await effects.release(claim)).toBe(false);
      expect(await refused(at, () => effects.complete(claim, 1))).toMatchObject({
        details: { reason: "released" },
      });
      expect(await held(at, "k")).toMatchObject({ fence: 2 });
    }),
  );
}

function expiredReleaseTests(fixture: InFixture): void {
  test(
    "that has run out is not released, and stays over when the clock goes back",
    fixture(async (at) => {
      const { effects, clock, database } = at;
      const claim = await held(at, "k", 100);
      const release = effects.release.prepare(await held(at, "prepared", 100));
      clock.advance(99);
      expect(await effects.release(await held(at, "in time", 1))).toBe(true);
      clock.advance(1);
      expect(await effects.release(claim)).toBe(false);
      expect(await database.write("mine", release, { isolation: "readCommitted" })).toBe(false);
      clock.set(1_000);
      expect(await effects.release(claim)).toBe(false);
      for (const call of [() => effects.complete(claim, 1), () => effects.renew(claim)])
        expect(await refused(at, call)).toMatchObject({ code: "EFFECT_LEASE_LOST" });
      // Nobody has to wait until the clock comes there again.
      expect(await held(at, "k")).toMatchObject({ fence: 2 });
      expect(await held(at, "prepared")).toMatchObject({ fence: 2 });
    }),
  );
}

function conflictTests(fixture: InFixture): void {
  const recorded = {
    kind: "llm",
    input: { model: "small", messages: [{ role: "user", text: "secret 1" }] },
  };
  const other = {
    kind: "llm",
    input: { model: "small", messages: [{ role: "user", text: "secret 2" }] },
  };

  test(
    "[A77] is a conflict that names the path that differs and shows no values, whatever has become of it",
    fixture(async (at) => {
      const { effects } = at;
      const outcome = await effects.claim(turn, "k", recorded);
      const check = async (): Promise<void> => {
        for (const call of [
          () => effects.claim(turn, "k", other),
          () => effects.execute(turn, "k", other, () => 1),
          () => effects.replay(turn, "k", other),
        ]) {
          const error = await refused(at, call);
          expect(error).toMatchObject({
            code: "EFFECT_CONFLICT",
            retryable: false,
            details: {
              scopeKind: "turn",
              scope: "t1",
              replayKey: "k",
              path: "$.input.messages[0].text",
            },
          });
          expect(error.details?.["recordedHash"]).toMatch(/^[0-9a-f]{64}$/);
          expect(error.details?.["givenHash"]).toMatch(/^[0-9a-f]{64}$/);
          expect(error.message).toContain("$.input.messages[0].text");
          expect(JSON.stringify([error.message, error.details])).not.toContain("secret");
        }
      };
      await check();
      if (outcome.kind !== "claimed") throw new Error("Nobody has it.");
      await effects.complete(outcome.claim, 1);
      await check();
    }),
  );

  test(
    "[A77] another kind is another envelope; the order of keys makes none",
    fixture(async (at) => {
      const { effects } = at;
      await effects.execute(turn, "k", { kind: "a", input: 1 }, () => "v");
      expect(
        await refused(at, () => effects.replay(turn, "k", { kind: "b", input: 1 })),
      ).toMatchObject({
        code: "EFFECT_CONFLICT",
        details: { path: "$.kind" },
      });
      const input = { b: [1, { d: 1, c: 2 }], a: new Date(7) };
      const same = { a: new Date(7), b: [1, { c: 2, d: 1 }] };
      await effects.execute(turn, "o", { kind: "a", input }, () => "v");
      expect(await effects.replay(turn, "o", { input: same, kind: "a" })).toBe("v");
    }),
  );
}
