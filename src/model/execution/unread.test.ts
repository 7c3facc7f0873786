import { describe, expect, test } from "vitest";
import type { ExecutionId } from "../ids/execution-id.ts";
import { decideUnread, isInRanges, rangesOf, type SeqRange } from "./unread.ts";

const id = "a" as ExecutionId;

describe("numbers as ranges", () => {
  test.each([
    [[], []],
    [[4], [[4, 4]]],
    [
      [5, 1, 2, 3, 2, 7],
      [
        [1, 3],
        [5, 5],
        [7, 7],
      ],
    ],
  ])("are each once, in order: %j", (numbers, ranges) => {
    expect(rangesOf(numbers)).toEqual(ranges);
  });

  test("hold what is between their ends, and those", () => {
    const ranges: readonly SeqRange[] = [
      [2, 4],
      [7, 7],
      [9, 12],
    ];
    const held = Array.from({ length: 15 }, (_, n) => n).filter((n) => isInRanges(ranges, n));
    expect(held).toEqual([2, 3, 4, 7, 9, 10, 11, 12]);
  });
});

describe("what a run leaves unread", () => {
  // Numbers 1, 2, 4 and 6 are signals that no run before has read; 2 was taken by name.
  const open = [1, 2, 4, 6].map((seq) => ({ seq, isTaken: seq === 2 }));

  test("is what it did not take by name, when it says nothing", () => {
    expect(decideUnread(id, { seen: 6, unread: null }, open)).toEqual({
      unread: [1, 4, 6],
      read: [2],
    });
  });

  test("is what it names, and what it had not seen", () => {
    expect(decideUnread(id, { seen: 4, unread: [[4, 4]] }, open)).toEqual({
      unread: [4, 6],
      read: [1, 2],
    });
    expect(decideUnread(id, { seen: 4, unread: [] }, open)).toEqual({
      unread: [6],
      read: [1, 2, 4],
    });
    // What was taken is read, also when it was not seen.
    expect(decideUnread(id, { seen: 0, unread: [] }, open)).toEqual({
      unread: [1, 4, 6],
      read: [2],
    });
  });

  test.each([
    ["what was taken", 6, [[2, 2]]],
    ["what is no signal, or was read before", 6, [[5, 5]]],
    ["what is none among others that are", 6, [[4, 6]]],
    ["what it had not seen", 4, [[6, 6]]],
    ["what nobody sent", 4, [[9, 9]]],
  ] as const)("cannot be %s", (_, seen, unread) => {
    expect(() => decideUnread(id, { seen, unread }, open)).toThrow(
      expect.objectContaining({
        code: "EVENTS_INVALID",
        details: { id, reason: "response" },
      }),
    );
  });
});
