import { describe, expect, test } from "vitest";
import { parseExecutionId } from "../ids/execution-id.ts";
import {
  decideOverlap,
  firedRunId,
  instantRunId,
  type Overlap,
  type OverlapDecision,
} from "./run-schedule.ts";

describe("the run of an instant", () => {
  test.each<[number, string]>([
    [0, "a@1970-01-01T00:00:00Z"],
    [Date.UTC(2026, 10, 18, 9), "a@2026-11-18T09:00:00Z"],
    [Date.UTC(2026, 10, 18, 9) + 5, "a@2026-11-18T09:00:00_005Z"],
    [8.64e15, "a@275760-09-13T00:00:00Z"],
  ])("at %d is called %s", (instant, id) => {
    expect(instantRunId("a", instant)).toBe(id);
  });

  test("has an id that is one, however long the name is", () => {
    const name = "x".repeat(64);
    for (const id of [instantRunId(name, 8.64e15 - 1), firedRunId(name, "k".repeat(50))])
      expect(parseExecutionId(id)).toBe(id);
  });
});

describe("an instant", () => {
  const start: OverlapDecision = { kind: "start" };

  test.each<[Overlap, number, number, OverlapDecision]>([
    ["skip", 0, 0, start],
    ["queue", 0, 0, start],
    ["allow", 0, 0, start],
    ["cancelPrevious", 0, 0, start],
    ["skip", 1, 0, { kind: "skip", reason: "unfinished" }],
    ["skip", 0, 1, { kind: "skip", reason: "unfinished" }],
    ["queue", 1, 0, { kind: "wait" }],
    ["queue", 0, 1, { kind: "wait" }],
    ["queue", 1, 99, { kind: "wait" }],
    ["queue", 1, 100, { kind: "skip", reason: "full" }],
    ["allow", 5, 5, start],
    ["cancelPrevious", 1, 0, { kind: "cancel" }],
    ["cancelPrevious", 0, 1, { kind: "cancel" }],
  ])("with %s, %d unfinished runs and %d that wait", (overlap, unfinished, waiting, decision) => {
    expect(decideOverlap(overlap, { unfinished, waiting })).toEqual(decision);
  });
});
