import { describe, expect, test } from "vitest";
import { checkedSelector, isTruthy, select, textOf } from "./selector.ts";
import type { PayloadSelector } from "./selector.ts";

const payload = { a: { "b/c": [10, { d: null }], "~": 1 }, text: "hi" };

describe("selecting from a payload", () => {
  test.each<[PayloadSelector, unknown]>([
    [{ kind: "payload" }, payload],
    [{ kind: "pointer", pointer: "" }, payload],
    [{ kind: "pointer", pointer: "/a/b~1c/0" }, 10],
    [{ kind: "pointer", pointer: "/a/b~1c/1/d" }, null],
    [{ kind: "pointer", pointer: "/a/~0" }, 1],
    [{ kind: "constant", value: [1] }, [1]],
    [{ kind: "present", pointer: "/a/b~1c/1/d" }, true],
    [{ kind: "present", pointer: "/a/b~1c/2" }, false],
    [{ kind: "present", pointer: "/a/toString" }, false],
    [
      {
        kind: "template",
        text: "{t} and {n}{t}",
        values: {
          t: { kind: "pointer", pointer: "/text" },
          n: { kind: "pointer", pointer: "/a/b~1c" },
        },
      },
      'hi and [10,{"d":null}]hi',
    ],
  ])("%j", (selector, value) => {
    expect(select(checkedSelector(selector, []), payload)).toEqual(value);
  });

  test("a pointer to nothing is an error that names it", () => {
    expect(() => select({ kind: "pointer", pointer: "/a/x" }, payload)).toThrow(
      expect.objectContaining({
        code: "EVENT_SELECTOR_UNMATCHED",
        details: { pointer: "/a/x" },
      }),
    );
  });

  test.each([
    [null, false],
    [undefined, false],
    [false, false],
    ["", false],
    [[], false],
    [{}, false],
    [0, true],
    [true, true],
    ["x", true],
    [[0], true],
    [{ a: 1 }, true],
  ])("%j is %j", (value, isTrue) => {
    expect(isTruthy(value)).toBe(isTrue);
  });

  test("text is as it is, and everything else is JSON", () => {
    expect([textOf("a"), textOf(1), textOf({ b: 2n }), textOf(undefined)]).toEqual([
      "a",
      "1",
      '{"b":"2"}',
      "",
    ]);
  });

  test.each([
    [undefined, "$"],
    [{ kind: "other" }, "$"],
    [{ kind: "pointer", pointer: "a" }, "$"],
    [{ kind: "template", text: "{x}", values: {} }, "$"],
    [{ kind: "template", text: "", values: { x: { kind: "no" } } }, "$.values.x"],
  ])("%j is refused at %s", (selector, path) => {
    expect(() => checkedSelector(selector, [])).toThrow(
      expect.objectContaining({
        code: "PROCESS_INVALID",
        details: expect.objectContaining({ path }),
      }),
    );
  });
});
