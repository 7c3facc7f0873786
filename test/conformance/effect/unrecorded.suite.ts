import { describe, expect, test } from "vitest";
import { HoldfastError } from "../../../src/model/errors.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { until } from "../lease/leased-sessions.ts";
import { run as execute, sql } from "../../../src/kernel.ts";
import { ask, Hand, held, inEffects, never, refused, storedEffects, turn } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function effectUnrecordedSuite(backend: Backend): void {
  const fixture = inEffects(backend);
  describe("what is not recorded", () => {
    unrecordedTests(fixture);
  });
  describe("what is recorded though something fails", () => {
    keptTests(fixture);
  });
}

function unrecordedTests(fixture: InFixture): void {
  test(
    "[A81] a value of the wrong kind, returned or recorded, has its code",
    fixture(async ({ effects, database }) => {
      const isText = (value: unknown): value is string => typeof value === "string";
      const options = { accept: isText };
      expect(
        await rejection(
          effects.execute<string>(turn, "k", ask, () => 5 as unknown as string, options),
        ),
      ).toMatchObject({
        code: "EFFECT_RESULT_REFUSED",
        details: { source: "returned" },
      });
      expect(await storedEffects(database)).toMatchObject([{ status: "inProgress", token: null }]);
      expect(await effects.execute(turn, "k", ask, () => 6)).toBe(6);
      expect(await rejection(effects.execute(turn, "k", ask, never, options))).toMatchObject({
        code: "EFFECT_RESULT_REFUSED",
        details: { source: "recorded" },
      });
    }),
  );

  test(
    "a value that cannot be stored: the next call runs it again, at once",
    fixture(async ({ effects }) => {
      const error = await rejection(
        effects.execute<unknown>(turn, "k", ask, () => ({ f: () => 1 })),
      );
      expect(error).toMatchObject({
        code: "EFFECT_RESULT_UNSTORABLE",
        details: { replayKey: "k", path: "$.f", reason: "NOT_SERIALIZABLE" },
        cause: { code: "NOT_SERIALIZABLE" },
      });
      expect(await effects.execute(turn, "k", ask, ({ isRepeat }) => isRepeat)).toBe(true);
    }),
  );

  test(
    "an error of the store that passes through the function, however final it looks to it",
    fixture(async ({ effects }) => {
      for (const code of [
        "DATABASE_BUSY",
        "OUTCOME_UNKNOWN",
        "DATABASE_CLOSED",
        "ABORTED",
        "EFFECT_LEASE_LOST",
        "EFFECT_NOT_RECORDED",
        "LOCK_LOST",
        "SCHEMA_OUTDATED",
        "DATABASE_ACCESS_DENIED",
      ] as const)
        expect(
          await rejection(
            effects.execute(turn, "k", ask, () => {
              throw new HoldfastError(code, "Not now.");
            }),
          ),
        ).toMatchObject({ code });
      expect(await effects.execute(turn, "k", ask, () => "ran")).toBe("ran");
    }),
  );

  test(
    "what a call ends with whose caller gave up; the next one runs it again",
    fixture(async ({ effects, clock, database }) => {
      const hand = new Hand();
      const giveUp = new AbortController();
      const { signal } = giveUp;
      const call = effects.execute(turn, "k", ask, hand.run, { signal });
      await until(() => hand.calls === 1);
      giveUp.abort(new Error("enough"));
      expect(await rejection(call)).toMatchObject({
        code: "ABORTED",
        cause: { message: "enough" },
      });
      expect(hand.signal?.aborted).toBe(true);
      // It still runs, so nobody else may.
      expect(await effects.claim(turn, "k", ask)).toMatchObject({
        kind: "busy",
      });
      hand.fail(new Error("stopped"));
      await until(() => clock.sleepers === 0);
      const rows = await storedEffects(database);
      expect(rows).toMatchObject([{ status: "inProgress", token: null }]);
      expect(await effects.execute(turn, "k", ask, ({ isRepeat }) => isRepeat)).toBe(true);
      expect(await rejection(effects.execute(turn, "k2", ask, never, { signal }))).toMatchObject({
        code: "ABORTED",
      });
    }),
  );
}

function keptTests(fixture: InFixture): void {
  test(
    "a value above the size limit: every later call gets the refusal, and none runs the function again",
    fixture(async ({ effects, database }) => {
      let calls = 0;
      const large = (): string => {
        calls += 1;
        return "x".repeat(3 * 1024 * 1024);
      };
      const refusal = {
        name: "HoldfastError",
        code: "VALUE_TOO_LARGE",
        details: { size: 3 * 1024 * 1024 + 2, limit: 2 * 1024 * 1024 },
      };
      const retry = { maxRetries: 2, backoff: 0 };
      expect(await rejection(effects.execute(turn, "k", ask, large, { retry }))).toMatchObject(
        refusal,
      );
      expect(await rejection(effects.execute(turn, "k", ask, large, { retry }))).toMatchObject(
        refusal,
      );
      expect(await rejection(effects.replay(turn, "k", ask))).toMatchObject(refusal);
      expect(calls).toBe(1);
      expect(await storedEffects(database)).toMatchObject([{ status: "failed", is_transient: 0 }]);
    }),
  );

  test(
    "a value that nests too deeply, under a limit in which its refusal does not fit either",
    fixture(async ({ effectsIn }) => {
      const small = effectsIn({ valueLimits: { charactersMax: 50 } });
      let nested: unknown = 1;
      for (let level = 0; level < 300; level += 1) nested = [nested];
      for (const [key, value] of [
        ["deep", nested],
        ["long", "x".repeat(51)],
      ] as const) {
        const error = await rejection(small.execute(turn, key, ask, () => value));
        expect(error).toMatchObject({ code: "VALUE_TOO_LARGE" });
        expect(await rejection(small.execute(turn, key, ask, never))).toMatchObject({
          code: "VALUE_TOO_LARGE",
          message: error.message,
        });
      }
    }),
  );

  test(
    "a value above the size limit that is completed or recorded: the call is told, and so is the next one",
    fixture(async (at) => {
      const { effects, database } = at;
      const large = "x".repeat(3 * 1024 * 1024);
      const claim = await held(at, "claimed");
      for (let call = 0; call < 2; call += 1) {
        expect(await rejection(effects.complete(claim, large))).toMatchObject({
          code: "VALUE_TOO_LARGE",
        });
      }
      expect(await rejection(effects.record(turn, "recorded", ask, large))).toMatchObject({
        code: "VALUE_TOO_LARGE",
      });
      // What fits comes too late: nobody must take it for recorded.
      expect(await rejection(effects.complete(claim, "fits"))).toMatchObject({
        code: "VALUE_TOO_LARGE",
      });
      const late = effects.complete.prepare(claim, "fits");
      expect(
        await refused(at, () => database.write("bill", late, { isolation: "readCommitted" })),
      ).toMatchObject({ code: "VALUE_TOO_LARGE" });
      for (const key of ["claimed", "recorded"])
        expect(await rejection(effects.execute(turn, key, ask, never))).toMatchObject({
          code: "VALUE_TOO_LARGE",
        });
      expect(await storedEffects(database)).toMatchObject([
        { status: "failed" },
        { status: "failed" },
      ]);
    }),
  );

  test(
    "a part of another write whose value is above the size limit: that write is refused as a whole",
    fixture(async (at) => {
      const { effects, database } = at;
      const claim = await held(at, "k");
      const large = "x".repeat(3 * 1024 * 1024);
      const error = await refused(at, async () => {
        const complete = effects.complete.prepare(claim, large);
        await database.write(
          "bill",
          function* () {
            yield* execute(sql`UPDATE holdfast_effect SET created_at = created_at + 1`);
            yield* complete();
          },
          { isolation: "readCommitted" },
        );
      });
      expect(error).toMatchObject({ code: "VALUE_TOO_LARGE" });
      await effects.complete(claim, "fits");
      expect(await effects.execute(turn, "k", ask, never)).toBe("fits");
    }),
  );

  test(
    "a value that comes after all, though its caller gave up",
    fixture(async ({ effects, clock }) => {
      const hand = new Hand();
      const giveUp = new AbortController();
      const { signal } = giveUp;
      const call = effects.execute(turn, "k", ask, hand.run, { signal });
      await until(() => hand.calls === 1);
      giveUp.abort();
      expect(await rejection(call)).toMatchObject({ code: "ABORTED" });
      hand.end("late");
      await until(() => clock.sleepers === 0);
      expect(await effects.replay(turn, "k", ask)).toBe("late");
    }),
  );

  test(
    "a value that the store cannot write for a while: it waits",
    fixture(async ({ effects, clock, faults }) => {
      const hand = new Hand();
      const call = effects.execute(turn, "k", ask, hand.run);
      await until(() => hand.calls === 1);
      faults.failure = new HoldfastError("DATABASE_BUSY", "Somebody writes.");
      const { writes } = faults;
      hand.end("kept");
      await until(() => faults.writes === writes + 1 && clock.sleepers === 2);
      faults.failure = undefined;
      clock.advance(10);
      expect(await call).toBe("kept");
      expect(clock.sleepers).toBe(0);
    }),
  );

  test(
    "a failure that nobody can tell to be transient: it counts as final",
    fixture(async ({ effects }) => {
      const failing = (): never => {
        throw new RangeError("no disk");
      };
      const isTransient = (): never => {
        throw new TypeError("error.response is undefined");
      };
      const options = { isTransient, retry: { maxRetries: 3, backoff: 0 } };
      for (const run of [failing, never])
        expect(await rejection(effects.execute(turn, "k", ask, run, options))).toMatchObject({
          name: "RangeError",
          message: "no disk",
        });
    }),
  );

  test(
    "a value whose answer is lost: it is recorded once",
    fixture(async ({ effects, clock, faults }) => {
      const hand = new Hand();
      const call = effects.execute(turn, "k", ask, hand.run);
      await until(() => hand.calls === 1);
      faults.losesAnswer = true;
      hand.end("kept");
      await until(() => clock.sleepers === 2);
      clock.advance(10);
      expect(await call).toBe("kept");
    }),
  );

  test(
    "an effect that was claimed, and the answer lost: it is run all the same",
    fixture(async ({ effects, faults }) => {
      faults.losesAnswer = true;
      expect(await effects.execute(turn, "k", ask, () => "ran")).toBe("ran");
    }),
  );
}
