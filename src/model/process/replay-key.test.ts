import { describe, expect, test } from "vitest";
import { isForeignKey } from "./replay-key.ts";

describe("a replay key of the registry", () => {
  test.each([
    ["process:terminal:process.completed", "process.completed"],
    ["process:cancel_requested:h", "process.cancel_requested"],
    ["signal:go:k", "signal.go"],
    ["mine", "built"],
    ["processes:1", "built"],
    ["a process:started:1", "built"],
  ])("%s is for %s", (key, type) => {
    expect(isForeignKey(key, { type, hash: "h" })).toBe(false);
  });

  test.each([
    ["process:terminal:process.completed", "built"],
    ["process:terminal:process.completed", "process.failed"],
    ["process:terminal:built", "built"],
    ["process:cancel_requested:other", "process.cancel_requested"],
    ["process:started:1", "built"],
    ["process:external_ref", "process.completed"],
    ["process:", "built"],
    ["signal:go:k", "signal.stop"],
    ["signal:go:k", "built"],
    ["signal:go", "signal.go"],
    ["signal:", "signal."],
  ])("%s is not for %s", (key, type) => {
    expect(isForeignKey(key, { type, hash: "h" })).toBe(true);
  });
});
