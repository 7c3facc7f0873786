import { describe, expect, test } from "vitest";
import { endedBetween, isOver, snapshotOf } from "./snapshot.ts";

describe("snapshots", () => {
  test("show which transactions have ended", () => {
    const snapshot = snapshotOf("100:105:100,103");
    expect([99, 100, 101, 102, 103, 104, 105].filter((tx) => isOver(tx, snapshot))).toEqual([
      99, 101, 102, 104,
    ]);
    expect(isOver(7, snapshotOf("8:8:"))).toBe(true);
    expect(isOver(8, snapshotOf("8:8:"))).toBe(false);
  });

  test.each([
    ["nothing happened", "10:10:", "10:10:", []],
    ["two ended", "10:10:", "12:12:", [10, 11]],
    ["one ended, one runs", "10:10:", "10:12:10", [11]],
    ["the one that ran has ended", "10:12:10", "12:12:", [10]],
    ["a long one runs on", "5:12:5", "5:14:5", [12, 13]],
  ])("show which transactions ended in between: %s", (_, before, after, ended) =>
    expect(endedBetween(snapshotOf(before), snapshotOf(after))).toEqual(ended),
  );

  test("are not compared when far too many ended", () => {
    expect(endedBetween(snapshotOf("10:10:"), snapshotOf("20011:20011:"))).toBeUndefined();
  });
});
