import { describe, expect, test } from "vitest";
import { sql } from "../../../src/kernel.ts";
import type { EffectClaim, EffectScope } from "../../../src/effects.ts";
import type { Backend } from "../backend.ts";
import { ask, held, inEffects, meddle, never, refused, storedEffects, turn } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function effectBorderSuite(backend: Backend): void {
  const fixture = inEffects(backend);
  describe("what is no effect", () => {
    borderTests(fixture);
  });
  describe("a damaged effect", () => {
    damageTests(fixture);
  });
}

const nonsense: readonly unknown[] = [undefined, null, 5, "", "  ", "a\0b", "\ud800", {}, []];

function borderTests(fixture: InFixture): void {
  test(
    "[A74] scopes keep their kind, session and id; blank ids and everything else is refused with its code",
    fixture(async (at) => {
      const { effects, database } = at;
      await effects.execute(
        { kind: "turn", session: { id: "s", generation: 1 }, id: "turn 1" },
        "k",
        ask,
        () => 1,
      );
      await effects.execute({ kind: "drain", session: "s", id: "d" }, "k", ask, () => 1);
      await effects.execute({ kind: "operation", id: "o" }, "k", ask, () => 1);
      const rows = await storedEffects(database);
      expect(rows.map((row) => [row["scope_kind"], row["scope"], row["session"] === 0])).toEqual([
        ["turn", "turn 1", false],
        ["drain", "d", false],
        ["operation", "o", true],
      ]);
      const wrong: readonly (readonly [string, unknown])[] = [
        ["scope", undefined],
        ["scope", null],
        ["scope", "turn"],
        ...nonsense.map((kind) => ["scope.kind", { kind, id: "x" }] as const),
        ...nonsense.map((id) => ["scope.id", { kind: "turn", id }] as const),
        ["scope.id", { kind: "turn", id: "x".repeat(257) }],
        ["scope.session", { kind: "turn", id: "x", session: null }],
        ["scope.session", { kind: "turn", id: "x", session: 5 }],
        ["scope.session", { kind: "turn", id: "x", session: {} }],
      ];
      for (const [path, scope] of wrong)
        expect(
          await refused(at, () => effects.execute(scope as EffectScope, "k", ask, never)),
        ).toMatchObject({ code: "EFFECT_SCOPE_INVALID", details: { path } });
      const blank = { kind: "turn", id: "x", session: " " };
      expect(await refused(at, () => effects.execute(blank, "k", ask, never))).toMatchObject({
        code: "ID_MALFORMED",
      });
    }),
  );

  test(
    "keys, kinds, attempts and options are refused by name, before anything is run",
    fixture(async (at) => {
      const { effects } = at;
      for (const key of [...nonsense, "x".repeat(513)])
        expect(
          await refused(at, () => effects.execute(turn, key as string, ask, never)),
        ).toMatchObject({ code: "EFFECT_INVALID", details: { path: "key" } });
      for (const kind of [...nonsense, "x".repeat(129)])
        expect(
          await refused(at, () => effects.claim(turn, "k", { kind: kind as string, input: 1 })),
        ).toMatchObject({
          code: "EFFECT_INVALID",
          details: { path: "envelope.kind" },
        });
      for (const envelope of [undefined, null, "llm", 5])
        expect(
          await refused(at, () => effects.replay(turn, "k", envelope as unknown as typeof ask)),
        ).toMatchObject({
          code: "EFFECT_INVALID",
          details: { path: "envelope" },
        });
      for (const attempt of [0, -1, 1.5, Number.NaN, "1"])
        expect(
          await refused(at, () =>
            effects.execute(turn, "k", ask, never, {
              attempt: attempt as number,
            }),
          ),
        ).toMatchObject({
          code: "EFFECT_INVALID",
          details: { path: "attempt" },
        });
      for (const options of [
        { lease: 2 },
        { lease: 0 },
        { retry: { maxRetries: -1 } },
        { isTransient: 5 as unknown as () => boolean },
        { accept: "x" as unknown as (value: unknown) => value is never },
      ])
        expect(
          await refused(at, () => effects.execute(turn, "k", ask, never, options)),
        ).toMatchObject({ code: "OPTION_INVALID" });
      expect(
        await refused(at, () => effects.execute(turn, "k", ask, undefined as unknown as () => 1)),
      ).toMatchObject({ code: "OPTION_INVALID", details: { option: "run" } });
      expect(await refused(at, () => effects.sleep(turn, "k", -1))).toMatchObject({
        code: "DURATION_INVALID",
      });
      for (const observed of [null, 5, {}, { process: null }, { fence: 1 }])
        expect(
          await refused(at, () => effects.reclaim(turn, "k", ask, observed as never)),
        ).toMatchObject({
          code: "OPTION_INVALID",
          details: { option: "observed" },
        });
    }),
  );

  test(
    "properties that scopes, envelopes and retries do not have are refused by name",
    fixture(async (at) => {
      const { effects } = at;
      const slips: readonly (readonly [string, () => Promise<unknown>])[] = [
        ["sesion", () => effects.get({ ...turn, sesion: "s" } as never, "k")],
        ["imput", () => effects.claim(turn, "k", { ...ask, imput: 1 } as never)],
        [
          "maxRetry",
          () =>
            effects.execute(turn, "k", ask, never, {
              retry: { maxRetries: 1, maxRetry: 1 } as never,
            }),
        ],
        ["ttl", () => effects.claim(turn, "k", ask, { ttl: 1 } as never)],
      ];
      for (const [option, call] of slips)
        expect(await refused(at, call)).toMatchObject({
          code: "OPTION_INVALID",
          details: { option },
        });
    }),
  );

  test(
    "a claim is taken as it was given, and nothing else; none of it is in the error",
    fixture(async (at) => {
      const { effects } = at;
      const claim = await held(at, "k");
      for (const wrong of [
        undefined,
        null,
        "claim",
        {},
        { ...claim, key: "1" },
        { ...claim, token: undefined },
        { ...claim, fence: 1.5 },
        { ...claim, dueAt: "soon" },
      ])
        for (const call of [
          () => effects.renew(wrong as EffectClaim),
          () => effects.complete(wrong as EffectClaim, 1),
          () => effects.fail(wrong as EffectClaim, new Error("x")),
          () => effects.release(wrong as EffectClaim),
        ]) {
          const error = await refused(at, call);
          expect(error.code).toBe("OPTION_INVALID");
          expect(error.message).not.toContain(claim.token);
        }
      const other = { ...claim, scope: { kind: "", id: "x" } };
      expect(
        await refused(at, () => effects.complete(other as unknown as EffectClaim, 1)),
      ).toMatchObject({ code: "EFFECT_SCOPE_INVALID" });
    }),
  );

  test(
    "[AX20] times beyond what a Date can show are cut off there",
    fixture(async (at) => {
      const { effects } = at;
      const lease = Number.MAX_SAFE_INTEGER;
      expect(await effects.claim(turn, "k", ask, { lease })).toMatchObject({
        claim: { expiresAt: 8.64e15 },
      });
      const delay = Number.MAX_SAFE_INTEGER;
      expect(await effects.claim(turn, "later", ask, { delay })).toEqual({
        kind: "notDue",
        dueAt: 8.64e15,
      });
    }),
  );

  test(
    "the longest names go in and come out, in any script",
    fixture(async ({ effects }) => {
      const long = (length: number): string =>
        Array.from({ length }, (_, at) =>
          String.fromCodePoint(0x4e00 + ((at * 7_919) % 20_000)),
        ).join("");
      const scope = { kind: long(64), session: "s", id: long(256) };
      const key = long(512);
      const envelope = { kind: long(128), input: 1 };
      expect(await effects.execute(scope, key, envelope, () => "in")).toBe("in");
      expect(await effects.replay(scope, key, envelope)).toBe("in");
    }),
  );

  test(
    "sessions that are not there have no effects",
    fixture(async (at) => {
      const { effects } = at;
      const scope = { kind: "turn", session: "nobody", id: "t" };
      for (const call of [
        () => effects.execute(scope, "k", ask, never),
        () => effects.claim(scope, "k", ask),
        () => effects.replay(scope, "k", ask),
      ])
        expect(await refused(at, call)).toMatchObject({
          code: "SESSION_NOT_FOUND",
        });
    }),
  );
}

function damageTests(fixture: InFixture): void {
  const damage = [
    ["an odd status", "inProgress", sql`status = 'odd'`],
    ["no expiry", "inProgress", sql`expires_at = NULL`],
    ["no value", "completed", sql`outcome = NULL`],
    ["no time", "completed", sql`settled_at = NULL`],
    ["no token", "completed", sql`token = NULL`],
    ["a value that is no JSON", "completed", sql`outcome = 'no json'`],
    ["a failure that is no error", "failed", sql`outcome = '5'`],
    ["an envelope that is no JSON", "completed", sql`envelope = 'no json', hash = 'other'`],
  ] as const;

  test.each(damage)("is reported, not run again: %s", async (_, status, change) => {
    await fixture(async (at) => {
      const { effects } = at;
      const claim = await held(at, "k");
      if (status === "completed") await effects.complete(claim, 1);
      if (status === "failed") await effects.fail(claim, new Error("x"));
      await meddle(at, sql`UPDATE holdfast_effect SET ${change}`);
      const error = await refused(at, () => effects.execute(turn, "k", ask, never));
      expect(error).toMatchObject({
        code: "CORRUPT_ROW",
        details: { table: "holdfast_effect", key: String(claim.key) },
      });
    })();
  });
}
