import { describe, expect, test } from "vitest";
import { decideEffect, newClaim, standingOf } from "./effect.ts";
import type { EffectOutcome, EffectState, HeldEffect } from "./effect.ts";
import type { Encoded } from "../values/encoded.ts";
import type { OwnerId } from "../ids/prefixed-id.ts";

const first = "Own_1" as OwnerId;
const second = "Own_2" as OwnerId;
const claim: HeldEffect = {
  process: first,
  fence: 3,
  token: "secret",
  claimedAt: 100,
  renewedAt: 150,
  expiresAt: 200,
};
const absent: EffectState = { kind: "absent" };
const held: EffectState = {
  kind: "inProgress",
  hash: "h",
  dueAt: null,
  fence: 3,
  claim,
};
const free: EffectState = { ...held, claim: null };
const value: EffectOutcome = {
  status: "completed",
  isTransient: false,
  value: { text: '"v"' as Encoded, checksum: "c" },
};
const failure: EffectOutcome = { ...value, status: "failed" };
const settled: EffectState = {
  kind: "settled",
  hash: "h",
  dueAt: null,
  ...value,
  settledAt: 180,
  token: "secret",
};
const failed: EffectState = { ...settled, ...failure };

describe("who runs an effect", () => {
  test("the first one who asks, once it is due", () => {
    expect(decideEffect(absent, { effect: { hash: "h" }, now: 0 })).toEqual({
      kind: "run",
      fence: 1,
    });
    expect(decideEffect(absent, { effect: { hash: "h", dueAt: 5 }, now: 5 })).toEqual({
      kind: "run",
      fence: 1,
    });
    expect(decideEffect(absent, { effect: { hash: "h", dueAt: 5 }, now: 4 })).toEqual({
      kind: "notDue",
      dueAt: 5,
    });
  });

  test("nobody else until the last instant of the claim, anybody from then on", () => {
    expect(decideEffect(held, { effect: { hash: "h" }, now: 199 })).toEqual({
      kind: "busy",
      holder: { process: first, fence: 3, claimedAt: 100, expiresAt: 200 },
    });
    expect(decideEffect(held, { effect: { hash: "h" }, now: 200 })).toEqual({
      kind: "run",
      fence: 4,
    });
  });

  test("anybody when it was given back", () => {
    expect(decideEffect(free, { effect: { hash: "h" }, now: 0 })).toEqual({
      kind: "run",
      fence: 4,
    });
  });

  test("the same one again, by its token", () => {
    const again = { effect: { hash: "h" }, now: 199, token: "secret" };
    expect(decideEffect(held, again)).toEqual({ kind: "run", fence: 3, claim });
    expect(decideEffect(held, { ...again, token: "other_" }).kind).toBe("busy");
    expect(decideEffect(held, { ...again, now: 200 })).toEqual({ kind: "run", fence: 4 });
  });

  test.each([
    [{ fence: 3, process: first }, "run"],
    [{ fence: 2, process: first }, "busy"],
    [{ fence: 3, process: second }, "busy"],
  ])("who saw %o die: %s", (death, kind) => {
    const asked = { effect: { hash: "h" }, now: 199, death };
    expect(decideEffect(held, asked).kind).toBe(kind);
  });

  test("at the due time that was said first, whatever is said later", () => {
    const due = { ...free, dueAt: 500 } as const;
    expect(decideEffect(due, { effect: { hash: "h", dueAt: 100 }, now: 499 })).toEqual({
      kind: "notDue",
      dueAt: 500,
    });
    expect(decideEffect(due, { effect: { hash: "h", dueAt: 900 }, now: 500 })).toEqual({
      kind: "run",
      fence: 4,
    });
  });
});

describe("what is recorded", () => {
  test("is answered, whoever asks and however long ago it was", () => {
    const asked = { effect: { hash: "h" }, now: 9_999 };
    expect(decideEffect(settled, asked)).toEqual(settled);
    expect(decideEffect(failed, asked)).toEqual(failed);
  });

  test("is not answered before its due time, should the clock have been set back", () => {
    const due = { ...settled, dueAt: 500 } as const;
    expect(decideEffect(due, { effect: { hash: "h" }, now: 499 }).kind).toBe("notDue");
    expect(decideEffect(due, { effect: { hash: "h" }, now: 500 }).kind).toBe("settled");
    expect(decideEffect({ ...due, ...failure }, { effect: { hash: "h" }, now: 499 }).kind).toBe(
      "settled",
    );
    const again = { effect: { hash: "h" }, now: 499, token: "secret" };
    expect(decideEffect(due, again).kind).toBe("settled");
    expect(decideEffect(due, { ...again, token: "other_" }).kind).toBe("notDue");
  });

  test.each([
    ["held", held],
    ["given back", free],
    ["settled", settled],
    ["failed", failed],
  ])("conflicts with another envelope: %s", (_, state) => {
    for (const isStrict of [false, true])
      expect(decideEffect(state, { effect: { hash: "x" }, now: 0, isStrict })).toEqual({
        kind: "conflict",
        hash: "h",
      });
  });

  test("is all that strict replay answers", () => {
    const strict = { effect: { hash: "h" }, now: 9_999, isStrict: true };
    expect(decideEffect(absent, strict)).toEqual({ kind: "missing" });
    expect(decideEffect(held, strict)).toEqual({ kind: "unfinished" });
    expect(decideEffect(free, strict)).toEqual({ kind: "unfinished" });
    expect(decideEffect(settled, strict).kind).toBe("settled");
    expect(decideEffect(failed, strict).kind).toBe("settled");
  });
});

describe("who shows a claim", () => {
  const shown = { token: "secret", fence: 3 };

  test("has it until it runs out, and a clock that is set back does not revive it", () => {
    expect(standingOf(held, shown, 199)).toEqual({ kind: "held", claim });
    const expired = { kind: "lost", reason: "expired" };
    expect(standingOf(held, shown, 200)).toEqual(expired);
    const found = { ...held, claim: { ...claim, renewedAt: 200 } } as const;
    expect(standingOf(found, shown, 100)).toEqual(expired);
  });

  test.each([
    ["gone", absent, shown],
    ["released", free, shown],
    ["overtaken", free, { token: "secret", fence: 2 }],
    ["overtaken", held, { token: "secret", fence: 2 }],
    ["overtaken", held, { token: "other_", fence: 3 }],
    ["overtaken", settled, { token: "other_", fence: 3 }],
  ] as const)("has lost it: %s", (reason, state, fence) => {
    expect(standingOf(state, fence, 0)).toEqual({ kind: "lost", reason });
  });

  test("has settled it before, which is no loss", () => {
    expect(standingOf(settled, shown, 9_999)).toEqual(settled);
  });
});

test("a new claim lasts as long as was asked for, to the last instant there is", () => {
  const given = { process: null, token: "t", leaseMs: 50 };
  expect(newClaim(1, 100, given)).toEqual({
    process: null,
    fence: 1,
    token: "t",
    claimedAt: 100,
    renewedAt: 100,
    expiresAt: 150,
  });
  const long = { ...given, leaseMs: Number.MAX_SAFE_INTEGER };
  expect(newClaim(1, 100, long).expiresAt).toBe(8.64e15);
});
