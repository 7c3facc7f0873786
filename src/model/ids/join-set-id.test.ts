import { describe, expect, test } from "vitest";
import {
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

  test.each(["n:payments", "o:7", "g:1", "n:a/b-c", `n:${"x".repeat(64)}`])(
    "parses: %s",
    (text) => {
      expect(parseJoinSetId(text)).toBe(text);
    },
  );

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
    expect(() => namedJoinSet(name)).toThrow(
      expect.objectContaining({ code: "NAME_INVALID" }),
    );
  },
);

test.each([-1, 0.5, Number.NaN, 2 ** 53])(
  "a set cannot have the number %d",
  (number) => {
    const refused = expect.objectContaining({ code: "ID_MALFORMED" });
    expect(() => oneOffJoinSet(number)).toThrow(refused);
    expect(() => generatedJoinSet(number)).toThrow(refused);
  },
);
