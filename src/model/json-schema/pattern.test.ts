import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matches, parsedPattern } from "./pattern.ts";
import { Work, WorkExceeded } from "./work.ts";

function found(source: string, text: string, units = 1_000_000): boolean {
  const pattern = parsedPattern(source);
  if (typeof pattern === "string") throw new Error(pattern);
  return matches(pattern, text, new Work(units));
}

describe("a pattern", () => {
  test.each([
    ["", "anything", true],
    ["b", "abc", true],
    ["^b", "abc", false],
    ["^a.c$", "abc", true],
    ["^a.c$", "a\nc", false],
    ["^(?:ab|cd)+$", "abcdab", true],
    ["^(?<year>\\d{4})-\\d\\d$", "2026-11", true],
    ["^a{2,3}$", "aaaa", false],
    ["^a{2,}$", "aaaa", true],
    ["^a{0}$", "", true],
    ["^[^\\]\\d]+$", "a]", false],
    ["^[^\\]\\d]+$", "ab", true],
    ["^[]$", "a", false],
    ["^[^]$", "\n", true],
    ["^.$", "😀", true],
    ["^\\u{1F600}$", "😀", true],
    ["^\\uD83D\\uDE00$", "😀", true],
    ["^\\p{L}+$", "äß", true],
    ["\\bcat\\b", "a cat sat", true],
    ["\\bcat\\b", "concatenate", false],
    ["^(?=.*\\d)(?!.*\\s)[a-z0-9]+$", "abc1", true],
    ["^(?=.*\\d)(?!.*\\s)[a-z0-9]+$", "abc", false],
    // Valid only without the u flag.
    ["^\\-{1}a\\_$", "-a_", true],
    ["^a{,3}$", "a{,3}", true],
    ["^\\x41\\t\\/\\.$", "A\t/.", true],
    ["(a*)*b", "aaab", true],
    ["^(?:)*$", "", true],
  ])("%s in %j: %s", (source, text, expected) => {
    expect(found(source, text)).toBe(expected);
  });

  test.each([
    ["(", "is an invalid regular expression"],
    ["(a)\\1", "has a backreference or an octal escape, which is not supported"],
    ["(?<n>a)\\k<n>", "has a backreference or an octal escape, which is not supported"],
    ["(?<=a)b", "has a lookbehind, which is not supported"],
    ["(?<!a)b", "has a lookbehind, which is not supported"],
    ["a{100000}", "is too large"],
    ["((a{100}){100}){100}", "is too large"],
    ["(?:){1000000000}", "is too large"],
    ["(".repeat(200) + ")".repeat(200), "nests too deeply"],
    ["a".repeat(5_000), "has more than 4096 characters"],
  ])("%s is refused: it %s", (source, fault) => {
    expect(parsedPattern(source)).toBe(fault);
  });

  test.each(["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(.*a){12}$", "^(?=(a+)+$)a*$"])(
    "%s takes few steps where a native expression hangs",
    (source) => {
      expect(found(source, `${"a".repeat(60)}!`, 50_000)).toBe(false);
    },
  );

  test("ends at the limit of its work, however long the text is", () => {
    expect(() => found("^[a-z ]*$", "a".repeat(10_000), 1_000)).toThrow(WorkExceeded);
    expect(() => found(`(?:${"a?".repeat(900)})+$`, "a".repeat(1_000_000))).toThrow(WorkExceeded);
    expect(() => found("(?:(?=.*b).)*c", "a".repeat(20_000))).toThrow(WorkExceeded);
  });

  const atom = fc.constantFrom("a", "b", ".", "[ab]", "[^a]", "\\w", "\\b", "^", "$", "é");
  const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      atom,
      fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => a + b),
      fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => `(?:${a}|${b})`),
      fc
        .tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "{2}", "{1,2}", "{0,1}?", "*?"))
        .map(([a, sign]) => `(?:${a})${sign}`),
      tie("pattern").map((a) => `(?=${a})`),
      tie("pattern").map((a) => `(?!${a})`),
      tie("pattern").map((a) => `(${a})`),
    ),
  }));

  test("agrees with native expressions", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "é", "\n", " "), maxLength: 6 });
    fc.assert(
      fc.property(pattern, text, (source, subject) => {
        fc.pre(source.length < 60);
        expect(found(source, subject)).toBe(new RegExp(source, "u").test(subject));
      }),
      { numRuns: 2_000 },
    );
  });
});
