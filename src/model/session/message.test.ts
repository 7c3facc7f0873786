import { expect, test } from "vitest";
import { messageText } from "./message.ts";

test("the text of a message is that of its parts, joined by a blank line", () => {
  expect(messageText("  hello \n")).toBe("hello");
  expect(messageText({ text: "hello" })).toBe("hello");
  expect(messageText({ content: "hello" })).toBe("hello");
  expect(
    messageText({
      role: "user",
      parts: [
        { type: "text", text: "one " },
        { kind: "text", content: "two" },
        "three",
        { type: "text", text: "   " },
      ],
    }),
  ).toBe("one\n\ntwo\n\nthree");
});

test("tool calls and results are left out, and an image leaves a placeholder", () => {
  expect(
    messageText({
      content: [
        { type: "tool-call", text: "rm" },
        { type: "image", image: "…" },
        { type: "tool-result", content: "gone" },
        { type: "text", text: "see" },
      ],
    }),
  ).toBe("[Image attached]\n\nsee");
});

test("what has no text has none", () => {
  for (const payload of [
    null,
    undefined,
    7,
    [],
    {},
    { parts: [{ type: "text" }] },
    new Map([["text", "x"]]),
  ])
    expect(messageText(payload)).toBe("");
});

test("a long one is cut between characters, and can be stored", () => {
  expect(messageText("x".repeat(600))).toBe("x".repeat(500));
  expect(messageText(`${"x".repeat(499)}😀`)).toBe("x".repeat(499));
  expect(messageText("a\0b\ud800")).toBe("ab\ufffd");
});
