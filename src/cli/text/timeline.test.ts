import { describe, expect, test } from "vitest";
import type { Span } from "../../model/execution/span.ts";
import { timelineLines } from "./timeline.ts";

const plain = (_: unknown, text: string): string => text;
const drawn = (spans: readonly Span[], width?: number, now = 1_000): readonly string[] =>
  timelineLines(spans, { now, style: plain, width });

function step(name: string, began: number, ended: number, more: Partial<Span> = {}): Span {
  const attempts = [{ attempt: 1, began, ended, outcome: "completed" as const }];
  const bar = { kind: "step", version: 1, call: 1, name, outcome: "completed", attempts } as const;
  return { ...bar, began, ended, ...more } as Span;
}

describe("[RN1] the timeline of a run", () => {
  test("draws calls beside each other with their lengths, and what lasts up to the end", () => {
    const pay = step("pay", 100, 900, {
      outcome: "failed",
      attempts: [
        { attempt: 1, began: 100, ended: 300, outcome: "failed" },
        { attempt: 2, began: 800, ended: 900, outcome: "failed" },
      ],
    });
    const receive: Span = {
      kind: "receive",
      version: 4,
      began: 900,
      ended: null,
      call: 4,
      name: "go",
      until: null,
      outcome: null,
    };
    const sleep: Span = {
      kind: "sleep",
      version: 3,
      began: 0,
      ended: 500,
      call: 2,
      until: 500,
      outcome: "expired",
    };
    // A third of 48 columns for names, ten for bars.
    expect(drawn([step("fetch", 0, 300), sleep, pay, receive], 48)).toEqual([
      "Timeline of 1 s",
      "fetch      ===         300 ms",
      "sleep      -----       500 ms",
      "pay         ==-----=   800 ms, 2 attempts, fail…",
      "signal go           >  100 ms so far",
    ]);
  });

  test("draws at least a character, also at the very end", () => {
    expect(drawn([step("long", 0, 1_000), step("none", 1_000, 1_000)], 28)).toEqual([
      "Timeline of 1 s",
      "long  ================  1 s",
      "none                 =  0 ms",
    ]);
  });

  test("draws nothing for a run that took no time, or did nothing", () => {
    expect(drawn([])).toEqual([]);
    expect(drawn([step("a", 5, 5), step("b", 5, 5)])).toEqual([]);
  });

  test("draws the longest of many, and those that last", () => {
    const many = Array.from({ length: 100 }, (_, n) => step(`s${n}`, n, n + (n % 50)));
    const lasting = step("lasting", 999, 999, { ended: null, outcome: null });
    const [head, ...lines] = drawn([...many, lasting], 80);
    expect(head).toBe("Timeline of 1 s (the 20 longest of 101)");
    expect(lines.map((line) => line.split(" ")[0])).toEqual(
      [40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 91, 92, 93, 94, 95, 96, 97, 98, 99]
        .map((n) => `s${n}`)
        .concat("lasting"),
    );
  });

  test.each([18, 30, 60, 80, 200])("fits a terminal of %i columns", (width) => {
    const spans = [step("a name that is too long for a terminal", 0, 1_000), step("全角", 3, 7)];
    for (const line of drawn(spans, width)) expect(line.length).toBeLessThanOrEqual(width);
    expect(Math.max(...drawn(spans, width).map((line) => line.length))).toBeLessThanOrEqual(98);
  });

  test("names every kind of bar, and escapes what a user named", () => {
    const bar = { version: 1, began: 0, ended: 10, call: 1 };
    const spans = [
      { ...bar, kind: "transaction", name: "\u001B[2Jbook", outcome: "completed", attempts: [] },
      { ...bar, kind: "child", name: "billing/charge", child: "c", outcome: "timedOut" },
      { ...bar, kind: "external", child: "x", outcome: "completed" },
      { ...bar, kind: "attempt", attempt: 2, outcome: "died" },
      { ...bar, kind: "death", outcome: "ownerDied" },
      { ...bar, kind: "death", outcome: "leaseExpired" },
      { ...bar, kind: "paused" },
      { ...bar, kind: "cancelling" },
      { ...bar, kind: "parked", outcome: "NONDETERMINISM" },
    ] as unknown as readonly Span[];
    expect(
      drawn(spans, 80).map((line) => line.replace(/ {2}[-=]+ {2}/, " | ").replaceAll(/ +/g, " ")),
    ).toEqual([
      "Timeline of 10 ms",
      "\\u001b[2Jbook | 10 ms",
      "billing/charge | 10 ms, timed out",
      "answer from outside | 10 ms",
      "attempt 2 | 10 ms, its process died",
      "its process died | 10 ms",
      "its worker was gone | 10 ms",
      "paused | 10 ms",
      "cancelling | 10 ms",
      "parked | 10 ms",
    ]);
  });
});
