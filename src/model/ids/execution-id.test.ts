import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  childId,
  increment,
  nextLevel,
  parseExecutionId,
  splitToParts,
  topLevelOf,
} from "./execution-id.ts";
import { parseDelayId } from "./delay-id.ts";
import { namedJoinSet, parseJoinSetId } from "./join-set-id.ts";

const top = "E_01ARZ3NDEKTSV4RRFFQ69G5FAV";

function malformed(reason: string): unknown {
  return expect.objectContaining({
    code: "ID_MALFORMED",
    details: expect.objectContaining({ reason }),
  });
}

describe("a top-level execution id", () => {
  test.each([
    top,
    "order-42",
    "a",
    "tenant:7/order@2_x",
    "e_small",
    "E",
    "Delay",
    "Run_anything",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "x".repeat(128),
  ])("may be %s", (text) => {
    expect(parseExecutionId(text)).toBe(text);
    expect(splitToParts(parseExecutionId(text))).toBeUndefined();
    expect(topLevelOf(parseExecutionId(text))).toBe(text);
  });

  test.each([
    ["E_", "ulid"],
    ["E_order", "ulid"],
    [top.toLowerCase().replace("e_", "E_"), "ulid"],
    [`${top}0`, "ulid"],
    ["Delay_", "prefix"],
    [`Delay_${top}`, "prefix"],
    ["", "length"],
    ["x".repeat(129), "length"],
    ["order 42", "alphabet"],
    ["örder", "alphabet"],
    ["order\n", "alphabet"],
    ["a\u0000b", "alphabet"],
    ["a\ud800b", "alphabet"],
  ])("is not %j, because of its %s", (text, reason) => {
    expect(() => parseExecutionId(text)).toThrow(malformed(reason));
  });

  test.each([undefined, null, 7, {}, [], () => "a", Symbol("a")])(
    "is a text: %o is none, of a delay or a set neither",
    (value) => {
      const text = value as string;
      expect(() => parseExecutionId(text)).toThrow(malformed("alphabet"));
      expect(() => parseDelayId(text)).toThrow(malformed("prefix"));
      expect(() => parseJoinSetId(text)).toThrow(malformed("joinSet"));
    },
  );
});

describe("a child's id", () => {
  test("is its parent's id with its place there", () => {
    const parent = parseExecutionId("tenant:7/order_9");
    const child = nextLevel(parent, namedJoinSet("payments"));
    expect(child).toBe("tenant:7/order_9.n:payments_1");
    expect(increment(child)).toBe("tenant:7/order_9.n:payments_2");
    const grandchild = childId(child, parseJoinSetId("o:7"), 3);
    expect(grandchild).toBe("tenant:7/order_9.n:payments_1.o:7_3");
    expect(splitToParts(grandchild)).toEqual({
      parent: "tenant:7/order_9.n:payments_1",
      joinSet: "o:7",
      index: 3,
    });
    expect(topLevelOf(grandchild)).toBe("tenant:7/order_9");
  });

  test.each([
    [`${top}.`, "segment"],
    [`${top}..n:a_1`, "segment"],
    [`${top}.n:a`, "segment"],
    [`${top}.n:a_1.`, "segment"],
    [`${top}.x:a_1`, "joinSet"],
    [`${top}.n:a_0`, "index"],
    [".n:a_1", "length"],
    ["E_bad.n:a_1", "ulid"],
    ["Delay_a.n:a_1", "prefix"],
    ["a b.n:a_1", "alphabet"],
  ])("is not %j, because of its %s", (text, reason) => {
    expect(() => parseExecutionId(text)).toThrow(malformed(reason));
  });

  test("is at most 512 characters long", () => {
    const levels = `${".n:abcd_1".repeat(54)}.n:abcdefghijklm_1`;
    const longest = parseExecutionId(`order-42${levels}`);
    expect(longest).toHaveLength(512);
    expect(() => parseExecutionId(`o${longest}`)).toThrow(malformed("length"));
    expect(() => nextLevel(longest, namedJoinSet("a"))).toThrow(
      "start it as a run of its own instead",
    );
  });

  test("has no sibling beyond the last exact index, and a top-level id none", () => {
    const last = parseExecutionId("a.n:b_9007199254740991");
    expect(() => increment(last)).toThrow(malformed("index"));
    expect(() => increment(parseExecutionId("a"))).toThrow(malformed("segment"));
  });
});

test("every id that is built parses, and splits into what it was built from", () => {
  const own = fc
    .stringMatching(/^[A-Za-z0-9_:/@-]{1,128}$/)
    .filter((key) => !key.startsWith("E_") && !key.startsWith("Delay_"));
  const place = fc.record({
    joinSet: fc.stringMatching(/^[ong]:[A-Za-z0-9/-]{1,64}$/),
    index: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  });
  fc.assert(
    fc.property(
      fc.oneof(own, fc.constant(top)),
      fc.array(place, { maxLength: 4 }),
      (root, places) => {
        let id = parseExecutionId(root);
        for (const { joinSet, index } of places) {
          const parent = id;
          id = childId(parent, parseJoinSetId(joinSet), index);
          expect(parseExecutionId(String(id))).toBe(id);
          expect(splitToParts(id)).toEqual({ parent, joinSet, index });
        }
        expect(topLevelOf(id)).toBe(root);
      },
    ),
  );
});

test("any text either splits after parsing or is refused with a code", () => {
  const pieces = fc.constantFrom("E_", "a", ".", "_", "n:", "1", "0", "o:7");
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const text = parts.join("");
      try {
        const split = splitToParts(parseExecutionId(text));
        const rebuilt =
          split === undefined ? text : `${split.parent}.${split.joinSet}_${split.index}`;
        expect(rebuilt).toBe(text);
      } catch (error) {
        expect(error).toMatchObject({ code: "ID_MALFORMED" });
      }
    }),
  );
});
