import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { until } from "../lease/leased-sessions.ts";
import { ask, Hand, inEffects, never, refused, storedEffects, turn } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function effectExecuteSuite(backend: Backend): void {
  const fixture = inEffects(backend);
  describe("executing an effect", () => {
    executeTests(fixture);
  });
}

function executeTests(fixture: InFixture): void {
  test(
    "[A76] runs a step once, records its value, and answers with it from then on",
    fixture(async ({ effects }) => {
      const value = { at: new Date(7), ids: [1n, 2n], none: undefined };
      const step = { kind: "step", input: { id: "x", n: 1 } };
      expect(await effects.execute(turn, "k", step, () => value)).toEqual(value);
      expect(await effects.execute(turn, "k", step, never)).toEqual(value);
      expect(await effects.replay(turn, "k", step)).toEqual(value);
    }),
  );

  test(
    "[A76] records what a step threw, with its code, and throws it again without running",
    fixture(async ({ effects }) => {
      const boom = (): never => {
        throw Object.assign(new TypeError("no such tool"), {
          code: "E_TOOL",
          cause: new Error("deeper"),
          secret: "left out",
        });
      };
      const seen = [
        await rejection(effects.execute(turn, "k", ask, boom)),
        await rejection(effects.execute(turn, "k", ask, never)),
        await rejection(effects.replay(turn, "k", ask)),
      ];
      for (const error of seen) {
        expect(error).toBeInstanceOf(TypeError);
        expect(error).toMatchObject({
          message: "no such tool",
          code: "E_TOOL",
          cause: { message: "deeper" },
        });
        expect(error).not.toHaveProperty("secret");
      }
    }),
  );

  test(
    "[A75] two at once that end in reverse order replay in any order, without being run",
    fixture(async ({ effects }) => {
      const [one, two] = [new Hand(), new Hand()];
      const first = effects.execute(turn, "one", ask, one.run);
      const second = effects.execute(turn, "two", ask, two.run);
      await until(() => one.calls === 1 && two.calls === 1);
      two.end("second");
      expect(await second).toBe("second");
      one.end("first");
      expect(await first).toBe("first");
      for (const key of ["two", "one", "two"])
        expect(await effects.execute(turn, key, ask, never)).toBe(
          key === "one" ? "first" : "second",
        );
    }),
  );

  test(
    "[A75] so do attempts of one call that end in reverse order",
    fixture(async ({ effects }) => {
      const [one, two] = [new Hand(), new Hand()];
      const first = effects.execute(turn, "k", ask, one.run, { attempt: 1 });
      const second = effects.execute(turn, "k", ask, two.run, { attempt: 2 });
      await until(() => one.calls === 1 && two.calls === 1);
      two.end("second");
      await second;
      one.end("first");
      await first;
      for (const attempt of [2, 1])
        expect(await effects.execute(turn, "k", ask, never, { attempt })).toBe(
          attempt === 1 ? "first" : "second",
        );
    }),
  );

  test(
    "[A80] a sleep ends at the instant that was fixed first, and its replay at once when that is over",
    fixture(async ({ effects, clock, database, faults }) => {
      let slept = false;
      const sleep = effects.sleep(turn, "nap", 120).then(() => (slept = true));
      await until(() => clock.sleepers === 1);
      // Nobody holds it meanwhile, so there is nothing to renew.
      expect(await storedEffects(database)).toMatchObject([
        { kind: "sleep", due_at: 1_120, token: null, fence: 0 },
      ]);
      const writes = faults.writes;
      clock.advance(100);
      expect(faults.writes).toBe(writes);
      const again = effects.sleep(turn, "nap", 120);
      await until(() => clock.sleepers === 2);
      expect(slept).toBe(false);
      clock.advance(20);
      await Promise.all([sleep, again]);
      await effects.sleep(turn, "nap", 120);
      expect(clock.now()).toBe(1_120);
      expect(clock.sleepers).toBe(0);
      expect(await rejection(effects.sleep(turn, "nap", 121))).toMatchObject({
        code: "EFFECT_CONFLICT",
      });
    }),
  );

  test(
    "[A80] what was recorded is not answered before its due time after the clock was set back",
    fixture(async ({ effects, clock }) => {
      const slept = effects.sleep(turn, "nap", 100);
      await until(() => clock.sleepers === 1);
      clock.advance(100);
      await slept;
      clock.set(1_050);
      let isOver = false;
      const again = effects.sleep(turn, "nap", 100).then(() => {
        isOver = true;
      });
      await until(() => clock.sleepers === 1);
      expect(isOver).toBe(false);
      clock.advance(50);
      await again;
    }),
  );

  test(
    "[A81] the envelope holds no functions and no bytes",
    fixture(async (at) => {
      const { effects } = at;
      for (const [path, input] of [
        ["$.input.callback", { callback: () => 1 }],
        ["$.input.files[0]", { files: [new Uint8Array(3)] }],
        ["$.input.symbol", { symbol: Symbol("x") }],
      ] as const)
        expect(
          await refused(at, () => effects.execute(turn, "k", { kind: "x", input }, never)),
        ).toMatchObject({ code: "NOT_SERIALIZABLE", details: { path } });
    }),
  );

  test(
    "[A81] an envelope that went through JSON is the same one, and another is not",
    fixture(async ({ effects, database }) => {
      const envelope = { kind: "llm", input: { z: [1, 2.5], a: { b: "ü" } } };
      const read = JSON.parse(JSON.stringify(envelope)) as typeof envelope;
      await effects.execute(turn, "a", envelope, () => 1);
      await effects.execute(turn, "b", read, () => 2);
      await effects.execute(turn, "c", { ...read, kind: "llm2" }, () => 3);
      const rows = await storedEffects(database);
      const [a, b, c] = rows.map(({ hash }) => hash);
      expect(a).toBe(b);
      expect(c).not.toBe(a);
      // A golden value: what is on users' disks must stay comparable.
      expect(a).toBe("dfcd7da384a9a48ca96a04ea360551dd053058074e05a134a4ef28790e21add2");
    }),
  );
}
