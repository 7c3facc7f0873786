import { describe, expect, test } from "vitest";
import { checkedPolicy, classOf, commandPrefix, isPolicy, turnPrefix } from "./queue.ts";
import type { QueuePolicy } from "./queue.ts";

const join: QueuePolicy = {
  class: "turn",
  delivery: "earliestSafeBoundary",
  slot: "join",
  mergeKey: null,
};
const exclusive: QueuePolicy = { ...join, slot: "exclusive" };
const late: QueuePolicy = { ...join, delivery: "afterTurnCommit" };
const keyed: QueuePolicy = { ...join, mergeKey: "x" };
const command: QueuePolicy = { ...exclusive, class: "command" };
const joinedCommand: QueuePolicy = { ...join, class: "command" };

describe("what is taken together for a turn", () => {
  test.each<[string, readonly QueuePolicy[], number, number]>([
    ["nothing from an empty queue", [], 5, 0],
    ["nothing when none is wanted", [join], 0, 0],
    ["an exclusive batch alone", [exclusive, join], 5, 1],
    ["a group", [join, join, join], 5, 3],
    ["a group up to the maximum", [join, join, join], 2, 2],
    ["a group until another merge key", [join, keyed, join], 5, 1],
    ["a group with one key", [keyed, keyed, join], 5, 2],
    ["a group until another delivery", [join, join, late], 5, 2],
    ["a group until an exclusive batch", [join, exclusive, join], 5, 1],
    ["a group until a command", [join, joinedCommand, join], 5, 1],
    ["nothing behind a command", [command, join], 5, 0],
  ])("[A43] %s", (_, line, max, expected) => {
    expect(turnPrefix(line, "idle", max)).toBe(expected);
  });

  test("[A43] inside a turn only what may come at its boundaries", () => {
    expect(turnPrefix([late], "idle", 5)).toBe(1);
    expect(turnPrefix([late, join], "activeTurn", 5)).toBe(0);
    expect(turnPrefix([join, join, late], "activeTurn", 5)).toBe(2);
  });

  test("[A43] a command alone, and only in front", () => {
    expect(commandPrefix([])).toBe(0);
    expect(commandPrefix([command, command])).toBe(1);
    expect(commandPrefix([join, command])).toBe(0);
  });
});

describe("a batch", () => {
  const turn = { kind: "input", payload: 1 };
  const own = { kind: "reset", class: "command", payload: 1 } as const;

  test("has the class that all its items have", () => {
    expect(classOf([turn])).toBe("turn");
    expect(classOf([own, own])).toBe("command");
    expect(classOf(Array.from({ length: 256 }, () => turn))).toBe("turn");
  });

  test.each<[string, readonly object[], string]>([
    ["no items", [], "no items"],
    ["too many items", Array.from({ length: 257 }, () => turn), "at most 256"],
    ["two classes", [turn, own], "item 1"],
    ["a class nobody knows", [{ ...turn, class: "chore" }], "chore"],
  ])("with %s is refused", (_, items, told) => {
    expect(() => classOf(items as never)).toThrow(
      expect.objectContaining({
        code: "BATCH_INVALID",
        message: expect.stringContaining(told),
      }),
    );
  });

  test.each([{ delivery: "soon" }, { slot: "any" }, { slot: undefined }])(
    "with the policy %o is refused",
    (policy) => {
      expect(() => checkedPolicy({ ...join, ...policy } as never)).toThrow(
        expect.objectContaining({ code: "BATCH_INVALID" }),
      );
      expect(isPolicy({ ...join, ...policy } as never)).toBe(false);
    },
  );
});
