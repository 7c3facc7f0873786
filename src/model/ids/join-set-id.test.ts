import { describe, expect, test } from "vitest";
import {
  continuationOf,
  generatedJoinSet,
  namedJoinSet,
  oneOffJoinSet,
  parseJoinSetId,
} from "./join-set-id.ts";

describe("a join set id", () => {
  test("keeps named, one-off and generated sets of the same name apart", () => {
    expect(namedJoinSet("7")).toBe("n:7");
    expect(oneOffJoinSet(7)).toBe("o:7");
    expect(generatedJoinSet(7)).toBe("g:7");
  });

  test("keeps those of each run under an id apart, by how often it was started anew", () => {
    expect(namedJoinSet("7", 0)).toBe("n:7");
    expect(namedJoinSet("7", 2)).toBe("n2:7");
    expect(oneOffJoinSet(7, 10)).toBe("o10:7");
    expect(generatedJoinSet(7, 1)).toBe("g1:7");
    expect(
      ["n:7", "n2:7", "o10:7", "g1:7", "o:2"].map((text) => continuationOf(parseJoinSetId(text))),
    ).toEqual([0, 2, 10, 1, 0]);
  });

  test.each([
    "n:payments",
    "o:7",
    "g:1",
    "n:a/b-c",
    `n:${"x".repeat(64)}`,
    "n1:a",
    "o9007199254740991:7",
  ])("parses: %s", (text) => {
    expect(parseJoinSetId(text)).toBe(text);
  });

  test.each([
    "",
    "n",
    "n:",
    ":a",
    "x:a",
    "N:a",
    "n:a_b",
    "n:a.b",
    "n:a:b",
    "n:a b",
    "n:ä",
    "n:a\n",
    "n0:a",
    "n01:a",
    "n-1:a",
    "1n:a",
    "n9007199254740992:a",
    "n10000000000000000:a",
    `n:${"x".repeat(65)}`,
  ])("is refused: %j", (text) => {
    expect(() => parseJoinSetId(text)).toThrow(
      expect.objectContaining({
        code: "ID_MALFORMED",
        details: { reason: "joinSet", text },
      }),
    );
  });
});

test.each(["", "a_b", "a.b", "a:b", "a b", "ä", "a\n", "x".repeat(65)])(
  "a set cannot be named %j",
  (name) => {
    expect(() => namedJoinSet(name)).toThrow(expect.objectContaining({ code: "NAME_INVALID" }));
  },
);

test.each([-1, 0.5, Number.NaN, 2 ** 53])("a set cannot have the number %d", (number) => {
  const refused = expect.objectContaining({ code: "ID_MALFORMED" });
  expect(() => oneOffJoinSet(number)).toThrow(refused);
  expect(() => generatedJoinSet(number)).toThrow(refused);
  expect(() => oneOffJoinSet(1, number)).toThrow(refused);
  expect(() => namedJoinSet("a", number)).toThrow(refused);
});
