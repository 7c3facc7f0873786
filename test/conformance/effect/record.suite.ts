import { describe, expect, test } from "vitest";
import { sql } from "../../../src/kernel.ts";
import { sessions } from "../../../src/sessions.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { createSession, until } from "../lease/leased-sessions.ts";
import { ask, Hand, held, inEffects, meddle, never, storedEffects, turn } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function effectRecordSuite(backend: Backend): void {
  const fixture = inEffects(backend);
  describe("the record of effects", () => {
    readTests(fixture);
  });
  describe("an effect that is recorded without a claim", () => {
    ownTests(fixture);
  });
  describe("effects that are no longer wanted", () => {
    removalTests(fixture);
  });
}

function readTests(fixture: InFixture): void {
  test(
    "shows one effect with all there is of it, and no token",
    fixture(async (at) => {
      const { effects, clock, database } = at;
      expect(await effects.get(turn, "k")).toBeUndefined();
      const claim = await held(at, "k");
      const view = {
        replayKey: "k",
        attempt: 1,
        kind: "llm",
        input: { prompt: "hello" },
        createdAt: 1_000,
        dueAt: null,
      };
      expect(await effects.get(turn, "k")).toMatchObject({
        ...view,
        state: {
          kind: "inProgress",
          holder: { process: database.owner, fence: 1, expiresAt: 31_000 },
        },
      });
      clock.advance(5);
      await effects.complete(claim, [1n]);
      const settled = await effects.get(turn, "k");
      expect(settled).toMatchObject({
        ...view,
        state: { kind: "completed", settledAt: 1_005, value: [1n] },
      });
      await effects.fail(await held(at, "f"), new RangeError("no"));
      expect(await effects.get(turn, "f")).toMatchObject({
        state: { kind: "failed", error: { name: "RangeError" } },
      });
      expect(JSON.stringify(await effects.list(turn))).not.toContain(claim.token);
      expect(await effects.get(turn, "k", { attempt: 2 })).toBeUndefined();
    }),
  );

  test(
    "lists a scope in pages by key and attempt, without the values, and names what is damaged",
    fixture(async (at) => {
      const { effects } = at;
      for (const [key, attempt] of [
        ["b", 2],
        ["b", 1],
        ["c", 1],
        ["a", 10],
        ["a", 9],
      ] as const)
        await effects.execute(turn, key, ask, () => 1, { attempt });
      await effects.execute({ ...turn, id: "t2" }, "a", ask, () => 1);
      await meddle(
        at,
        sql`UPDATE holdfast_effect SET status = 'odd' WHERE replay_key = 'b' AND attempt = 1`,
      );
      const seen: string[] = [];
      const damaged: unknown[] = [];
      for (let after = undefined, more = true; more;) {
        const page = await effects.list(turn, {
          limit: 2,
          ...(after && { after }),
        });
        seen.push(...page.items.map((item) => `${item.replayKey}${item.attempt}`));
        damaged.push(...page.damaged);
        after = page.next;
        more = after !== undefined;
      }
      expect(seen).toEqual(["a9", "a10", "b2", "c1"]);
      expect(damaged).toMatchObject([{ table: "holdfast_effect" }]);
      const { items } = await effects.list(turn, { limit: 1 });
      expect(items).toMatchObject([
        { kind: "llm", status: "completed", settledAt: 1_000, holder: null },
      ]);
      for (const limit of [0, 1_001])
        expect(await rejection(effects.list(turn, { limit }))).toMatchObject({
          code: "OPTION_INVALID",
        });
      const { next = "" } = await effects.list(turn, { limit: 1 });
      const other = { ...turn, id: "t2" };
      for (const [scope, after] of [
        [turn, "a"],
        [other, next],
      ] as const)
        expect(await rejection(effects.list(scope, { after }))).toMatchObject({
          code: "CURSOR_INVALID",
        });
    }),
  );
}

/** What a transaction of one's own does, and the record of it. */
function ownTests(fixture: InFixture): void {
  test(
    "is recorded with what was done in the same transaction, or not at all; a repetition is the same",
    fixture(async ({ effects, database }) => {
      const record = effects.record.prepare(turn, "k", ask, { seat: 4 });
      const all = (fails: boolean): Promise<unknown> =>
        database.write("mine", function* () {
          const outcome = yield* record();
          if (fails) throw new Error("no");
          return outcome;
        });
      expect((await rejection(all(true))).message).toBe("no");
      expect(await storedEffects(database)).toEqual([]);
      expect(await all(false)).toEqual({ kind: "recorded" });
      const before = await storedEffects(database);
      expect(await all(false)).toEqual({ kind: "recorded" });
      expect(await storedEffects(database)).toEqual(before);
      expect(await effects.execute(turn, "k", ask, never)).toEqual({ seat: 4 });
      expect(await effects.record(turn, "k", ask, "other")).toEqual({
        kind: "completed",
        value: { seat: 4 },
      });
    }),
  );

  test(
    "is left alone while a worker runs it, and when its key is used for something else",
    fixture(async (at) => {
      const { effects, database } = at;
      const claim = await held(at, "k");
      const before = await storedEffects(database);
      expect(await effects.record(turn, "k", ask, 1)).toMatchObject({
        kind: "busy",
        holder: { fence: 1 },
      });
      const other = { kind: "llm", input: { prompt: "bye" } };
      expect(await rejection(effects.record(turn, "k", other, 1))).toMatchObject({
        code: "EFFECT_CONFLICT",
      });
      expect(await storedEffects(database)).toEqual(before);
      await effects.release(claim);
      expect(await effects.record(turn, "k", ask, 1)).toEqual({
        kind: "recorded",
      });
      expect(await rejection(effects.complete(claim, 2))).toMatchObject({
        code: "EFFECT_LEASE_LOST",
        details: { reason: "overtaken" },
      });
    }),
  );

  test(
    "is not recorded in strict replay, nor is what cannot be stored",
    fixture(async ({ effects, effectsIn, database }) => {
      const strict = effectsIn({ replayOnly: true });
      expect([strict.claim.kind, strict.record.kind]).toEqual(["read", "read"]);
      expect(await rejection(strict.record(turn, "k", ask, 1))).toMatchObject({
        code: "EFFECT_NOT_RECORDED",
      });
      expect(await rejection(effects.record(turn, "k", ask, () => 1))).toMatchObject({
        code: "EFFECT_RESULT_UNSTORABLE",
      });
      expect(await storedEffects(database)).toEqual([]);
      await effects.record(turn, "k", ask, 1);
      expect(await strict.record(turn, "k", ask, 2)).toEqual({
        kind: "completed",
        value: 1,
      });
    }),
  );
}

function removalTests(fixture: InFixture): void {
  test(
    "go with their scope when it is forgotten, in slices; who is at one learns that it is gone",
    fixture(async (at) => {
      const { effects, database, faults } = at;
      for (let n = 0; n < 7; n += 1) await effects.execute(turn, `k${n}`, ask, () => n);
      const claim = await held(at, "open");
      const other = { kind: "turn", session: "s", id: "t2" };
      await effects.execute(other, "k", ask, () => "kept");
      const waiting = effects.execute(turn, "open", ask, () => "anew");
      await until(() => faults.listeners === 1);
      expect(await effects.forget(turn, { rowsPerSlice: 3 })).toEqual({
        effects: 8,
      });
      expect(await waiting).toBe("anew");
      expect(await rejection(effects.complete(claim, 1))).toMatchObject({
        code: "EFFECT_LEASE_LOST",
        details: { reason: "gone" },
      });
      expect(await effects.forget(turn)).toEqual({ effects: 1 });
      expect(await effects.forget(turn)).toEqual({ effects: 0 });
      expect(await storedEffects(database)).toHaveLength(1);
      expect(await effects.replay(other, "k", ask)).toBe("kept");
      expect(await effects.execute(turn, "k0", ask, () => "again")).toBe("again");
    }),
  );

  test(
    "[A4] die with their session, in slices, and the next generation has none of them",
    fixture(async (at) => {
      const { effects, database } = at;
      await createSession(database, "other");
      for (let n = 0; n < 12; n += 1) await effects.execute(turn, `k${n}`, ask, () => n);
      await held(at, "open");
      const elsewhere = { kind: "turn", session: "other", id: "t1" };
      await effects.execute(elsewhere, "k1", ask, () => "kept");
      await effects.execute({ kind: "turn", id: "t1" }, "k1", ask, () => "no");
      const store = sessions(database);
      await store.delete("s", { rowsPerSlice: 5 });
      expect(await storedEffects(database)).toHaveLength(2);
      await store.create("s");
      expect(await effects.get(turn, "k1")).toBeUndefined();
      expect(await effects.execute(turn, "k1", ask, () => "new")).toBe("new");
      expect(await effects.execute(elsewhere, "k1", ask, never)).toBe("kept");
    }),
  );

  test(
    "a claim of a deleted generation counts no more, though the session is there again",
    fixture(async (at) => {
      const { effects, database } = at;
      const claim = await held(at, "k");
      await createSession(database, "s", 2);
      for (const call of [() => effects.complete(claim, 1), () => effects.renew(claim)])
        expect(await rejection(call())).toMatchObject({
          code: "SESSION_DELETED",
        });
      expect(await effects.execute(turn, "k", ask, () => "new")).toBe("new");
    }),
  );

  test(
    "a function that runs when its session is deleted is told, and records nothing",
    fixture(async ({ effects, clock, database }) => {
      const hand = new Hand();
      const call = effects.execute(turn, "k", ask, hand.run, { lease: 300 });
      await until(() => hand.calls === 1);
      await sessions(database).delete("s");
      const ended = rejection(call);
      clock.advance(100);
      expect(await ended).toMatchObject({ code: "SESSION_DELETED" });
      expect(hand.signal?.aborted).toBe(true);
      hand.end(1);
      expect(await storedEffects(database)).toEqual([]);
    }),
  );
}
