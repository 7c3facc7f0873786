import { describe, expect, test } from "vitest";
import { decideAwait, isAwaitState, isOverdue } from "./await-event.ts";
import type { AwaitEnd, AwaitState, AwaitWish } from "./await-event.ts";

const open: AwaitState = { state: "open", dueAt: null, hash: null };
const due: AwaitState = { ...open, dueAt: 100 };
const yes: AwaitWish = { kind: "resolved", hash: "yes" };

describe("how an await-event ends", () => {
  test.each<readonly [AwaitWish, AwaitEnd]>([
    [yes, "resolved"],
    [{ kind: "failed", hash: "no" }, "failed"],
    [{ kind: "cancelled" }, "cancelled"],
    [{ kind: "revoked" }, "revoked"],
  ])("an open one by %j", (wish, end) => {
    expect(decideAwait(open, wish, 50)).toEqual({
      kind: "settle",
      end,
      at: 50,
    });
    expect(decideAwait(due, wish, 99)).toEqual({ kind: "settle", end, at: 99 });
    // Its time comes first, and when it was over counts.
    for (const now of [100, 5_000])
      expect(decideAwait(due, wish, now)).toEqual({
        kind: "settle",
        end: "timedOut",
        at: 100,
      });
  });

  test("not by time that is not over", () => {
    expect(decideAwait(open, { kind: "timedOut" }, 1e15)).toEqual({
      kind: "open",
    });
    expect(decideAwait(due, { kind: "timedOut" }, 99)).toEqual({
      kind: "open",
    });
    expect([isOverdue(due, 99), isOverdue(due, 100)]).toEqual([false, true]);
    expect(isOverdue(open, 1e15)).toBe(false);
    expect(isOverdue({ state: "resolved", dueAt: 1 }, 2)).toBe(false);
  });

  test("once: the same again is repeated, everything else is late", () => {
    const resolved: AwaitState = { ...due, state: "resolved", hash: "yes" };
    expect(decideAwait(resolved, yes, 5_000)).toEqual({ kind: "replayed" });
    for (const wish of [
      { kind: "resolved", hash: "no" },
      { kind: "failed", hash: "yes" },
      { kind: "cancelled" },
      { kind: "revoked" },
      { kind: "timedOut" },
    ] as const)
      expect(decideAwait(resolved, wish, 5_000)).toEqual({ kind: "late" });
    for (const state of ["cancelled", "revoked", "timedOut"] as const) {
      expect(decideAwait({ ...due, state }, { kind: state }, 0)).toEqual({
        kind: "replayed",
      });
      expect(decideAwait({ ...due, state }, yes, 0)).toEqual({ kind: "late" });
    }
  });
});

describe("a stored await-event", () => {
  const answered = { settledAt: 1, hash: "h", payload: "1" };
  const empty = { settledAt: null, hash: null, payload: null };
  test.each([
    [{ ...empty, state: "open" }, true],
    [{ ...answered, state: "resolved" }, true],
    [{ ...answered, state: "failed" }, true],
    [{ ...empty, settledAt: 1, state: "timedOut" }, true],
    [{ ...empty, settledAt: 1, state: "cancelled" }, true],
    [{ ...empty, settledAt: 1, state: "revoked" }, true],
    [{ ...empty, state: "shut" }, false],
    [{ ...empty, state: "toString", settledAt: 1 }, false],
    [{ ...empty, state: "open", settledAt: 1 }, false],
    [{ ...answered, state: "open" }, false],
    [{ ...answered, state: "resolved", payload: null }, false],
    [{ ...answered, state: "failed", hash: null }, false],
    [{ ...answered, state: "resolved", settledAt: null }, false],
    [{ ...answered, state: "cancelled" }, false],
  ])("%j was written by us: %s", (found, isOurs) => {
    expect(isAwaitState(found)).toBe(isOurs);
  });
});
