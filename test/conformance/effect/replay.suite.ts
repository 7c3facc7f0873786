import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { until } from "../lease/leased-sessions.ts";
import { ask, held, inEffects, never, refused, storedEffects, turn } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function effectReplaySuite(backend: Backend): void {
  const fixture = inEffects(backend);
  describe("strict replay", () => {
    strictTests(fixture);
  });
  describe("a failure that passes", () => {
    transientTests(fixture);
  });
}

function strictTests(fixture: InFixture): void {
  test(
    "[A77] answers with what is recorded, and with nothing else",
    fixture(async (at) => {
      const { effects, effectsIn } = at;
      await effects.execute(turn, "k", ask, () => "v");
      const strict = effectsIn({ replayOnly: true });
      expect(await strict.execute(turn, "k", ask, never)).toBe("v");
      expect(await strict.claim(turn, "k", ask)).toEqual({
        kind: "completed",
        value: "v",
      });
      for (const call of [
        () => strict.execute(turn, "other", ask, never),
        () => strict.claim(turn, "other", ask),
        () => strict.sleep(turn, "other", 5),
        () => effects.replay(turn, "other", ask),
      ])
        expect(await refused(at, call)).toMatchObject({
          code: "EFFECT_NOT_RECORDED",
          details: { replayKey: "other" },
        });
    }),
  );

  test(
    "[AX8] does not run what was begun and never finished, however long ago",
    fixture(async (at) => {
      const { effects, effectsIn, clock } = at;
      await held(at, "k", 100);
      const strict = effectsIn({ replayOnly: true });
      for (const ms of [0, 100, 1_000_000]) {
        clock.advance(ms);
        for (const call of [
          () => strict.execute(turn, "k", ask, never),
          () => strict.claim(turn, "k", ask),
          () => effects.replay(turn, "k", ask),
        ])
          expect(await refused(at, call)).toMatchObject({
            code: "EFFECT_UNFINISHED",
          });
      }
      const claim = await held(at, "k");
      await effects.release(claim);
      expect(await refused(at, () => effects.replay(turn, "k", ask))).toMatchObject({
        code: "EFFECT_UNFINISHED",
      });
    }),
  );

  test(
    "a replay writes nothing and takes no transaction that could",
    fixture(async ({ effects, faults, database }) => {
      for (let n = 0; n < 20; n += 1) await effects.execute(turn, `k${n}`, ask, () => n);
      const failed = effects.execute(turn, "failed", ask, () => {
        throw new Error("no");
      });
      await rejection(failed);
      const { writes } = faults;
      const { commits, calls } = database.stats();
      for (let n = 0; n < 20; n += 1)
        expect(await effects.execute(turn, `k${n}`, ask, never)).toBe(n);
      await rejection(effects.execute(turn, "failed", ask, never));
      await effects.replay(turn, "k1", ask);
      expect(faults.writes).toBe(writes);
      expect(database.stats()).toMatchObject({ commits, calls });
    }),
  );
}

function transientTests(fixture: InFixture): void {
  const overloaded = (): never => {
    throw Object.assign(new Error("overloaded"), { transient: true });
  };

  test(
    "[AX23] may be tried again under a new attempt, while the old one replays unchanged",
    fixture(async ({ effects, database }) => {
      const first = await rejection(effects.execute(turn, "k", ask, overloaded));
      expect(first).toMatchObject({ message: "overloaded", transient: true });
      const [row] = await storedEffects(database);
      expect(await effects.execute(turn, "k", ask, () => "second", { attempt: 2 })).toBe("second");
      expect(await storedEffects(database)).toMatchObject([
        row ?? {},
        { attempt: 2, status: "completed" },
      ]);
      for (const attempt of [1, 2, 1]) {
        const call = effects.execute(turn, "k", ask, never, { attempt });
        if (attempt === 2) expect(await call).toBe("second");
        else
          expect(await rejection(call)).toMatchObject({
            message: "overloaded",
            transient: true,
          });
      }
    }),
  );

  test(
    "[AX23] is tried again by itself as often as was asked for, with growing pauses that stay; a replay makes the same way",
    fixture(async ({ effectsIn, clock, database }) => {
      const store = effectsIn({
        entropy: { bytes: (length) => new Uint8Array(length) },
      });
      const seen: number[] = [];
      const options = {
        retry: { maxRetries: 2, backoff: 100 },
        isTransient: (error: unknown) => error instanceof RangeError,
      };
      const call = store.execute(
        turn,
        "k",
        ask,
        ({ attempt }) => {
          seen.push(clock.now());
          if (attempt < 3) throw new RangeError("again");
          return attempt;
        },
        options,
      );
      // The failure is recorded by then, and the pause counts from that.
      const pausesBefore = async (attempt: number): Promise<void> => {
        while ((await storedEffects(database)).length < attempt) await new Promise(setImmediate);
        await until(() => clock.sleepers === 1);
      };
      await pausesBefore(2);
      clock.advance(100);
      await pausesBefore(3);
      clock.advance(200);
      expect(await call).toBe(3);
      expect(seen).toEqual([1_000, 1_100, 1_300]);
      const rows = await storedEffects(database);
      expect(rows.map((row) => [row["status"], row["due_at"]])).toEqual([
        ["failed", null],
        ["failed", 1_100],
        ["completed", 1_300],
      ]);
      expect(await store.execute(turn, "k", ask, never, options)).toBe(3);
      expect(await store.replay(turn, "k", ask, { retry: { maxRetries: 2 } })).toBe(3);
      expect(await rejection(store.replay(turn, "k", ask))).toMatchObject({
        message: "again",
      });
    }),
  );

  test(
    "ends with the last failure when all attempts are used, and with the first that does not pass",
    fixture(async ({ effects, clock }) => {
      const retry = { maxRetries: 1, backoff: 0 };
      const call = effects.execute(turn, "a", ask, overloaded, { retry });
      expect(await rejection(call)).toMatchObject({ message: "overloaded" });
      let runs = 0;
      const final = effects.execute(
        turn,
        "b",
        ask,
        () => {
          runs += 1;
          throw new Error("final");
        },
        { retry },
      );
      expect(await rejection(final)).toMatchObject({ message: "final" });
      expect(runs).toBe(1);
      expect(clock.sleepers).toBe(0);
    }),
  );
}
