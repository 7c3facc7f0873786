import { describe, expect, test } from "vitest";
import {
  decideLease,
  extended,
  givenBackBefore,
  isLive,
  isUnrecordedEnd,
  leaseLost,
  lossOf,
  reentered,
} from "./lease.ts";
import type { HeldLease, LeaseOwner, LeaseState } from "./lease.ts";
import type { OwnerId } from "./ids/prefixed-id.ts";
import type { SessionId } from "./ids/session-id.ts";

const first = "Own_1" as OwnerId;
const second = "Own_2" as OwnerId;
const ada: LeaseOwner = { owner: "ada", incarnation: "a", process: first };
const bob: LeaseOwner = { owner: "bob", incarnation: "b", process: second };
const lease: HeldLease = {
  ...ada,
  fence: 7,
  givenBack: 0,
  token: "secret",
  claimedAt: 100,
  renewedAt: 150,
  expiresAt: 200,
};
const held: LeaseState = { kind: "held", lease };
/** Of the three leases before it, the first and the last were given back. */
const after: LeaseState = { kind: "held", lease: { ...lease, givenBack: 5 } };
const between: LeaseState = { kind: "free", fence: 7, givenBack: 5 };
const free: LeaseState = { kind: "free", fence: 7, givenBack: 0 };

describe("who gets a lease", () => {
  test("the first one when it is free, with the next fence", () => {
    expect(decideLease({ kind: "free", fence: 0, givenBack: 0 }, ada, 0)).toEqual({
      kind: "acquire",
      fence: 1,
    });
    expect(decideLease(free, bob, 0)).toEqual({ kind: "acquire", fence: 8 });
  });

  test("its holder until the last instant before expiry, anybody from then on", () => {
    expect(decideLease(held, bob, 199).kind).toBe("busy");
    expect(decideLease(held, bob, 200)).toEqual({ kind: "acquire", fence: 8 });
    expect(decideLease(held, ada, 200)).toEqual({ kind: "acquire", fence: 8 });
  });

  test("its holder again, by owner and incarnation, whatever the process", () => {
    expect(decideLease(held, ada, 199)).toEqual({ kind: "reenter", lease });
    const elsewhere = { ...ada, process: second };
    expect(decideLease(held, elsewhere, 199).kind).toBe("reenter");
    const restarted = { ...ada, incarnation: "b" };
    expect(decideLease(held, restarted, 199).kind).toBe("busy");
  });

  test("who is told that it is busy, without the token", () => {
    expect(decideLease(held, bob, 199)).toEqual({
      kind: "busy",
      holder: { ...ada, fence: 7, claimedAt: 100, expiresAt: 200 },
    });
  });

  test.each([
    [{ fence: 7, process: first }, "reclaim"],
    [{ fence: 6, process: first }, "busy"],
    [{ fence: 7, process: second }, "busy"],
  ])("who saw %o die: %s", (death, kind) => {
    expect(decideLease(held, bob, 199, death).kind).toBe(kind);
  });

  test("nobody by a death when the holder named no process", () => {
    const opaque = {
      kind: "held",
      lease: { ...lease, process: null },
    } as const;
    const death = { fence: 7, process: first };
    expect(decideLease(opaque, bob, 199, death).kind).toBe("busy");
  });
});

describe("a lease and the clock", () => {
  test("is not live before it was last heard of, so setting the clock back revives nothing", () => {
    const over = { renewedAt: 200, expiresAt: 200 };
    expect(isLive(over, 100)).toBe(false);
    expect(isLive(lease, 0)).toBe(true);
    expect(isUnrecordedEnd(over, 100)).toBe(false);
    expect(isUnrecordedEnd(lease, lease.expiresAt - 1)).toBe(false);
    expect(isUnrecordedEnd(lease, lease.expiresAt)).toBe(true);
  });

  test("is never shortened", () => {
    expect(extended(lease, 160, 10)).toEqual({ ...lease, renewedAt: 160 });
    expect(extended(lease, 50, 10)).toEqual(lease);
    expect(extended(lease, 160, 100)).toEqual({
      ...lease,
      renewedAt: 160,
      expiresAt: 260,
    });
  });

  test("ends no later than a Date can show", () => {
    expect(extended(lease, 160, Number.MAX_SAFE_INTEGER).expiresAt).toBe(8.64e15);
  });

  test("shared by two processes names neither", () => {
    expect(reentered(lease, ada, 160, 100).process).toBe(first);
    const elsewhere = { ...ada, process: second };
    expect(reentered(lease, elsewhere, 160, 100).process).toBeNull();
  });
});

describe("what is remembered of the leases before", () => {
  test.each([
    ["nothing at first", { kind: "free", fence: 0, givenBack: 0 }, 1],
    ["one that was given back", free, 1],
    ["one that was taken", held, 0],
    ["those before it too", after, 10],
    ["those before it too, given back", between, 11],
    ["31 of them at most", { kind: "free", fence: 40, givenBack: 2 ** 31 - 1 }, 2 ** 31 - 1],
    [
      "31 of them at most, the last one taken",
      { kind: "held", lease: { ...lease, givenBack: 2 ** 31 - 1 } },
      2 ** 31 - 2,
    ],
  ] as const)("%s", (_, state, expected) => {
    expect(givenBackBefore(state)).toBe(expected);
  });
});

describe("why a lease is lost", () => {
  test.each([
    ["it was not", held, lease, 199, undefined],
    ["nothing was shown", held, undefined, 199, "missing"],
    ["it is free", free, lease, 199, "released"],
    ["another token", held, { ...lease, token: "secreT" }, 199, "overtaken"],
    ["another fence", held, { ...lease, fence: 6 }, 199, "overtaken"],
    ["another owner", held, { ...lease, owner: "bob" }, 199, "overtaken"],
    ["it has run out", held, lease, 200, "expired"],
    ["given back before", after, { ...lease, fence: 6 }, 199, "released"],
    ["taken before", after, { ...lease, fence: 5 }, 199, "overtaken"],
    ["given back long ago", after, { ...lease, fence: 4 }, 199, "released"],
    ["given back, and free", between, { ...lease, fence: 6 }, 199, "released"],
    ["taken, and free", between, { ...lease, fence: 5 }, 199, "overtaken"],
    ["never given out", after, { ...lease, fence: 8 }, 199, "overtaken"],
  ] as const)("%s", (_, state, fence, now, expected) => {
    expect(lossOf(state, fence, now)).toBe(expected);
  });

  test("the error tells it, and what to do, but no token", () => {
    const error = leaseLost("chat" as SessionId, "expired");
    expect(error.message).toContain('Session "chat": the lease expired');
    expect(error).toMatchObject({
      code: "LEASE_LOST",
      details: { session: "chat", reason: "expired" },
    });
  });
});
