import { describe, expect, test } from "vitest";
import { namedJoinSet } from "./join-set-id.ts";
import { memberFault, memberText, splitMember } from "./join-set-member.ts";

describe("a place in a join set", () => {
  test("is written as set and index, and splits again", () => {
    const text = memberText(namedJoinSet("payments"), 12);
    expect(text).toBe("n:payments_12");
    expect(memberFault(text)).toBeUndefined();
    expect(splitMember(text)).toEqual({ joinSet: "n:payments", index: 12 });
  });

  test("reaches to the last exact integer and not beyond", () => {
    expect(memberFault("n:a_9007199254740991")).toBeUndefined();
    expect(memberFault("n:a_9007199254740992")).toBe("index");
    expect(memberFault("n:a_10000000000000000")).toBe("index");
  });

  test.each([
    ["", "segment"],
    ["n:a", "segment"],
    ["_1", "segment"],
    ["n_1", "joinSet"],
    ["n:_1", "joinSet"],
    ["n:a_b_1", "joinSet"],
    ["n:a_", "index"],
    ["n:a_0", "index"],
    ["n:a_01", "index"],
    ["n:a_-1", "index"],
    ["n:a_1x", "index"],
    ["n:a_1e3", "index"],
  ])("is not %j, because of its %s", (text, fault) => {
    expect(memberFault(text)).toBe(fault);
  });

  test.each([0, -1, 1.5, Number.NaN, 2 ** 53])("cannot have the index %d", (index) => {
    expect(() => memberText(namedJoinSet("a"), index)).toThrow(
      expect.objectContaining({
        code: "ID_MALFORMED",
        details: expect.objectContaining({ reason: "index" }),
      }),
    );
  });
});
