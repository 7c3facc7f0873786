import { describe, expect, test } from "vitest";
import { decideRecovery } from "./process.ts";
import { isOutput, outputOf, outputOfResult } from "./output.ts";
import { firstDifference, registrationIdentity } from "./registration.ts";

describe("what is to be done about a process that nobody works on", () => {
  test.each([
    ["rerunnable", null, "run"],
    ["rerunnable", 1, "run"],
    ["ownerBound", null, "run"],
    ["ownerBound", 1, "abandon"],
    ["external", null, "external"],
    ["external", 1, "external"],
  ] as const)("%s, begun at %s: %s", (disposition, startedAt, recovery) => {
    const attempts = startedAt === null ? 0 : 1;
    expect(decideRecovery({ disposition, startedAt, attempts, attemptsMax: null })).toBe(recovery);
  });

  test.each([
    ["rerunnable", 0, 1, "run"],
    ["rerunnable", 1, 1, "abandon"],
    ["rerunnable", 1, 2, "run"],
    ["ownerBound", 1, 2, "abandon"],
    ["external", 2, 2, "external"],
  ] as const)("%s, begun %s times of %s: %s", (disposition, attempts, attemptsMax, recovery) => {
    const startedAt = attempts === 0 ? null : 1;
    expect(decideRecovery({ disposition, startedAt, attempts, attemptsMax })).toBe(recovery);
  });
});

describe("what a process ends with", () => {
  test("a value is wrapped by how it ended, unless it is such an output already", () => {
    expect(outputOf("completed", 1)).toEqual({ kind: "completed", value: 1 });
    expect(outputOf("failed", { a: 1 })).toEqual({
      kind: "failed",
      code: "process_failed",
      message: '{"a":1}',
      raw: { a: 1 },
    });
    expect(outputOf("cancelled", "m")).toEqual({
      kind: "cancelled",
      message: "m",
      raw: "m",
    });
    const failed = { kind: "failed", code: "c", message: "m" } as const;
    expect(outputOf("failed", failed)).toBe(failed);
    expect(outputOf("completed", failed)).toEqual({
      kind: "completed",
      value: failed,
    });
  });

  test("an output may have a control, and a failure a class and its raw form", () => {
    for (const output of [
      { kind: "completed", value: undefined, control: { next: "stop" } },
      { kind: "failed", class: "timeout", code: "c", message: "m", raw: [1], control: null },
      { kind: "failed", code: "c", message: "m", class: "" },
      { kind: "failed", code: "c", message: "m", class: undefined, raw: undefined },
      { kind: "cancelled", message: "m", raw: 1, control: 2 },
    ])
      expect(isOutput(output)).toBe(true);
  });

  test("what only looks like an output is none", () => {
    for (const value of [
      { kind: "completed", value: 1, class: "c" },
      { kind: "completed", value: 1, raw: 1 },
      { kind: "failed", class: 1, code: "c", message: "m" },
      { kind: "failed", code: 1, message: "m" },
      { kind: "failed", code: undefined, message: "m" },
      { kind: "cancelled", message: "m", class: "c" },
      { kind: "abandoned", message: "m", control: 1 },
      { kind: "constructor", message: "m" },
      Object.assign(Object.create({ value: 1 }) as object, { kind: "completed" }),
      null,
      { kind: "completed" },
      { kind: "completed", value: 1, more: 1 },
      { kind: "failed", message: "m" },
      { kind: "cancelled", message: 1 },
      { kind: "running" },
    ])
      expect(isOutput(value)).toBe(false);
  });

  test("the result of an execution becomes an output", () => {
    expect(outputOfResult({ kind: "timedOut" })).toMatchObject({
      kind: "failed",
      code: "timed_out",
    });
    expect(outputOfResult({ kind: "cancelled" })).toEqual({
      kind: "cancelled",
      message: "cancelled",
    });
  });
});

describe("what makes a registration the same", () => {
  const content = {
    id: "p",
    identity: { kind: "tool", label: null, definition: null },
    environment: null,
    input: undefined,
    eventTypes: [],
    disposition: "rerunnable",
    attemptsMax: null,
    originator: null,
    causedBy: null,
    wakeTarget: null,
    execution: null,
  } as const;
  const hash = (domain: string, version: number, value: unknown): string =>
    `${domain}:${version}:${JSON.stringify(value)}`;

  test("is a hash of each part that it has, in a fixed form", () => {
    expect(registrationIdentity(hash, content).parts).toEqual({
      kind: 'process-kind:1:"tool"',
      input: "process-input:1:undefined",
      eventTypes: "process-eventTypes:1:[]",
      disposition: 'process-disposition:1:"rerunnable"',
    });
  });

  test("a part that is there in one of them only is a difference", () => {
    const { parts } = registrationIdentity(hash, content);
    const other = registrationIdentity(hash, { ...content, input: 1 });
    expect(firstDifference(parts, other.parts)).toBe("input");
    expect(firstDifference(parts, parts)).toBeUndefined();
  });
});
