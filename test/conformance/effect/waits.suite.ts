import { describe, expect, test } from "vitest";
import { HoldfastError } from "../../../src/model/errors.ts";
import { sql } from "../../../src/kernel.ts";
import { sessions } from "../../../src/sessions.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { until } from "../lease/leased-sessions.ts";
import { isOpen } from "../wait-fixture.ts";
import { ask, Hand, held, inEffects, meddle, never, turn } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function effectWaitsSuite(backend: Backend): void {
  const fixture = inEffects(backend);
  describe("an effect that somebody runs already", () => {
    waitTests(fixture);
    giveUpTests(fixture);
  });
  describe("the lease of an effect that runs", () => {
    leaseTests(fixture);
  });
}

function waitTests(fixture: InFixture): void {
  test(
    "[A78] its lease is renewed for as long as it takes, and who waits gets its value without running it",
    fixture(async ({ effects, clock, faults }) => {
      const hand = new Hand();
      const own = effects.execute(turn, "k", ask, hand.run, { lease: 30 });
      await until(() => hand.calls === 1);
      const other = effects.execute(turn, "k", ask, never, { lease: 30 });
      await until(() => faults.listeners === 1);
      for (let elapsed = 0; elapsed < 100; elapsed += 10) {
        const { writes } = faults;
        clock.advance(10);
        await until(() => faults.writes > writes);
        await until(() => clock.sleepers === 3);
      }
      expect(await isOpen(other)).toBe(true);
      hand.end("value");
      expect(await own).toBe("value");
      expect(await other).toBe("value");
      expect(hand.calls).toBe(1);
      expect([clock.sleepers, faults.listeners]).toEqual([0, 0]);
    }),
  );

  test(
    "its error is what all get who wait",
    fixture(async ({ effects, faults }) => {
      const hand = new Hand();
      const calls = [effects.execute(turn, "k", ask, hand.run)];
      await until(() => hand.calls === 1);
      calls.push(effects.execute(turn, "k", ask, never));
      calls.push(effects.execute(turn, "k", ask, never));
      await until(() => faults.listeners === 2);
      const errors = Promise.all(calls.map((call) => rejection(call)));
      hand.fail(new Error("no"));
      for (const error of await errors) expect(error).toMatchObject({ message: "no" });
    }),
  );

  test(
    "is taken over at once when its process dies, and by one only",
    fixture(async ({ effects, faults, database, clock }) => {
      await effects.claim(turn, "k", ask, { lease: "1 hour" });
      let runs = 0;
      const run = ({ isRepeat }: { readonly isRepeat: boolean }): string => {
        runs += 1;
        return `${runs} ${isRepeat}`;
      };
      const calls = [1, 2, 3].map(() => effects.execute(turn, "k", ask, run));
      await until(() => faults.listeners === 3);
      faults.die(database.owner);
      expect(await Promise.all(calls)).toEqual(["1 true", "1 true", "1 true"]);
      expect(clock.now()).toBe(1_000);
      expect([clock.sleepers, faults.listeners]).toEqual([0, 0]);
    }),
  );

  test(
    "is taken over when its lease has run out, wherever its process is",
    fixture(async (at) => {
      const { effects, clock } = at;
      await held(at, "k", 100);
      const call = effects.execute(turn, "k", ask, () => "mine");
      await until(() => clock.sleepers === 1);
      clock.advance(99);
      expect(await isOpen(call)).toBe(true);
      clock.advance(1);
      expect(await call).toBe("mine");
    }),
  );

  test(
    "is taken over as soon as it is given back",
    fixture(async (at) => {
      const { effects, faults } = at;
      const claim = await held(at, "k");
      const call = effects.execute(turn, "k", ask, () => "mine");
      await until(() => faults.listeners === 1);
      await effects.release(claim);
      expect(await call).toBe("mine");
    }),
  );

  test(
    "is waited for no longer than was said, and the one at it is not disturbed",
    fixture(async (at) => {
      const { effects, clock, faults } = at;
      const claim = await held(at, "k");
      expect(await rejection(effects.execute(turn, "k", ask, never, { timeout: 0 }))).toMatchObject(
        { code: "DEADLINE_EXCEEDED" },
      );
      const giveUp = new AbortController();
      const waits = [
        effects.execute(turn, "k", ask, never, { timeout: 500 }),
        effects.execute(turn, "k", ask, never, { signal: giveUp.signal }),
      ];
      await until(() => faults.listeners === 2);
      await faults.asleep(clock, 2);
      const codes = waits.map(async (wait) => (await rejection(wait)).code);
      giveUp.abort();
      clock.advance(500);
      expect(await Promise.all(codes)).toEqual(["DEADLINE_EXCEEDED", "ABORTED"]);
      expect([clock.sleepers, faults.listeners]).toEqual([0, 0]);
      await effects.complete(claim, "value");
      expect(await effects.execute(turn, "k", ask, never)).toBe("value");
    }),
  );

  test(
    "is waited for in vain when its session is deleted",
    fixture(async (at) => {
      const { effects, database, faults } = at;
      const claim = await held(at, "k");
      const call = effects.execute(turn, "k", ask, never);
      await until(() => faults.listeners === 1);
      const ended = rejection(call);
      await sessions(database).delete("s");
      expect(await ended).toMatchObject({ code: "SESSION_NOT_FOUND" });
      const fenced = { ...turn, session: { id: "s", generation: 1 } };
      expect(await rejection(effects.execute(fenced, "k", ask, never))).toMatchObject({
        code: "SESSION_DELETED",
      });
      for (const late of [() => effects.complete(claim, 1), () => effects.renew(claim)])
        expect(await rejection(late())).toMatchObject({
          code: "SESSION_DELETED",
        });
    }),
  );
}

function giveUpTests(fixture: InFixture): void {
  test(
    "is given back by who gave up at the moment of getting it, so that others need not wait for its lease",
    fixture(async (at) => {
      const { effects, clock, faults } = at;
      await held(at, "k", 100);
      const giveUp = new AbortController();
      const { signal } = giveUp;
      const call = rejection(effects.execute(turn, "k", ask, never, { signal }));
      await until(() => clock.sleepers === 1);
      const done: string[] = [];
      faults.onCommit = (operation) => {
        done.push(operation);
        giveUp.abort();
      };
      clock.advance(100);
      expect(await call).toMatchObject({ code: "ABORTED" });
      await until(() => done.length === 2);
      expect(done).toEqual(["claimEffect", "releaseEffect"]);
      const now = { timeout: 0 };
      expect(await effects.execute(turn, "k", ask, () => "mine", now)).toBe("mine");
      expect([clock.sleepers, faults.listeners]).toEqual([0, 0]);
    }),
  );
}

function leaseTests(fixture: InFixture): void {
  const busy = new HoldfastError("DATABASE_BUSY", "Somebody writes.");

  test(
    "[A79] is lost when somebody else has it: the caller is told at once, and the function through its signal",
    fixture(async (at) => {
      const { effects, clock, database, faults } = at;
      const hand = new Hand();
      const call = effects.execute(turn, "k", ask, hand.run, { lease: 300 });
      await until(() => hand.calls === 1);
      await meddle(
        at,
        sql`UPDATE holdfast_effect SET token = 'stolen', fence = 2, expires_at = 999999`,
      );
      const ended = rejection(call);
      clock.advance(100);
      expect(await ended).toMatchObject({
        code: "EFFECT_LEASE_LOST",
        details: { reason: "overtaken" },
      });
      expect(hand.signal?.aborted).toBe(true);
      expect(hand.signal?.reason).toMatchObject({ code: "EFFECT_LEASE_LOST" });
      const { writes } = faults;
      hand.end("nobody wants it");
      await until(() => clock.sleepers === 0);
      expect(faults.writes).toBe(writes);
      expect(database.durability).toBe(effects.durability);
    }),
  );

  test(
    "[A79] is lost when it has run out before the end: what came of it is not recorded",
    fixture(async (at) => {
      const { effects, clock } = at;
      const hand = new Hand();
      const call = effects.execute(turn, "k", ask, hand.run, { lease: 300 });
      await until(() => hand.calls === 1);
      await meddle(at, sql`UPDATE holdfast_effect SET expires_at = 1000`);
      hand.end("too late");
      expect(await rejection(call)).toMatchObject({
        code: "EFFECT_LEASE_LOST",
        details: { reason: "expired" },
      });
      expect(clock.sleepers).toBe(0);
      expect(await effects.execute(turn, "k", ask, () => "anew")).toBe("anew");
    }),
  );

  test(
    "a renewal that fails for another reason is tried again until the lease runs out",
    fixture(async ({ effects, clock, faults }) => {
      const hand = new Hand();
      const call = effects.execute(turn, "k", ask, hand.run, { lease: 300 });
      await until(() => hand.calls === 1);
      faults.failure = busy;
      let tries = faults.writes;
      clock.advance(100);
      for (let elapsed = 100; elapsed < 300; elapsed += 25) {
        tries += 1;
        await until(() => faults.writes === tries && clock.sleepers === 2);
        if (elapsed === 150) faults.failure = undefined;
        if (elapsed === 175) break;
        clock.advance(25);
      }
      expect(hand.signal?.aborted).toBe(false);
      faults.failure = busy;
      const ended = rejection(call);
      clock.advance(300);
      expect(await ended).toMatchObject({
        code: "EFFECT_LEASE_LOST",
        details: { reason: "expired" },
      });
      expect(hand.signal?.aborted).toBe(true);
    }),
  );

  test(
    "is not given up by a function that goes on after a loss: nothing is left behind",
    fixture(async ({ effects, clock, faults }) => {
      const hand = new Hand();
      const call = effects.execute(turn, "k", ask, hand.run, { lease: 30 });
      await until(() => hand.calls === 1);
      faults.failure = busy;
      const ended = rejection(call);
      clock.advance(30);
      await ended;
      expect([clock.sleepers, faults.listeners]).toEqual([0, 0]);
    }),
  );
}
