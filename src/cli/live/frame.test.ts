import { describe, expect, test } from "vitest";
import { changedRows, changeLine, frameOf } from "./frame.ts";
import type { RunRow } from "./run-row.ts";
import { screenOn } from "./screen.ts";
import { clipped, fitted, widthOf } from "../text/text-width.ts";
import type { RunsView } from "./watch-runs.ts";

function row(given: Partial<RunRow>): RunRow {
  return {
    id: "order-1",
    function: "orders/fulfil",
    status: "running",
    doing: "after charge",
    startedAt: 1_000,
    endedAt: null,
    ...given,
  };
}

function viewOf(rows: readonly RunRow[], hidden = 0): RunsView {
  return { rows, hidden, isHiddenMore: false };
}

const canvas = {
  columns: 60,
  style: (_: unknown, text: string) => text,
  now: 3_500,
};

describe("a frame of runs", () => {
  test("says for each run where it stands, for how long, and what it does", () => {
    const rows = [
      row({}),
      row({ id: "order-22", status: "completed", doing: "", endedAt: 1_040 }),
      row({ id: "o", status: "blocked", doing: "waits for signal approval" }),
    ];
    expect(frameOf(viewOf(rows, 120), canvas)).toEqual([
      "  order-1   orders/fulfil  running       2.5 s  after charge",
      "  order-22  orders/fulfil  completed     40 ms",
      "  o         orders/fulfil  blocked       2.5 s  waits for s…",
      "  … and 120 more",
    ]);
  });

  test("says so when there are more than were counted", () => {
    const view = { rows: [], hidden: 980, isHiddenMore: true };
    expect(frameOf(view, canvas)).toEqual(["  … and more than 980 more"]);
  });

  test("is never wider than the terminal, whatever runs are called and say", () => {
    const hostile = row({
      id: "日本語".repeat(40),
      function: "f".repeat(200),
      doing: "\u001b[2J\nünd 👩‍👩‍👧 \u202e x".repeat(9),
    });
    for (const columns of [20, 33, 80, 200])
      for (const line of frameOf(viewOf([hostile]), { ...canvas, columns })) {
        expect(widthOf(line)).toBeLessThanOrEqual(columns);
        expect(line).not.toMatch(/[\n\u202e]/);
        expect(line).not.toContain("\u001b");
      }
  });

  test("tells on a pipe only what has changed, the oldest first", () => {
    const before = viewOf([row({ id: "b" }), row({ id: "a" })]);
    const after = viewOf([
      row({ id: "c", status: "pending", doing: "waits for a worker" }),
      row({ id: "b" }),
      row({ id: "a", status: "failed", doing: "Error: no", endedAt: 3_000 }),
    ]);
    expect(changedRows(before, after).map((each) => changeLine(each, 3_500))).toEqual([
      "a (orders/fulfil) failed after 2 s: Error: no",
      "c (orders/fulfil) pending: waits for a worker",
    ]);
  });
});

describe("text on a terminal", () => {
  test("is measured in columns", () => {
    expect(["abc", "日本", "é", "👍🏽", "…"].map(widthOf)).toEqual([3, 4, 1, 2, 1]);
  });

  test("is cut between characters, and filled up", () => {
    expect(clipped("日本語", 5)).toBe("日本…");
    expect(clipped("日本語", 4)).toBe("日…");
    expect(clipped("abc", 0)).toBe("");
    expect(fitted("日本語", 4)).toBe("日… ");
    expect(fitted("ab", 4)).toBe("ab  ");
  });
});

describe("a screen", () => {
  test("draws over what it drew, also when the window became narrower, and says lines above", () => {
    let said = "";
    const output = {
      isTTY: true,
      columns: 40,
      rows: 10,
      write: (text: string) => (said += text),
    };
    const screen = screenOn(output, { NO_COLOR: "1" });
    screen.show(["x".repeat(40), "two"]);
    expect(said).toBe(`\u001b[?25l\r${"x".repeat(40)}\u001b[K\ntwo\u001b[K\n\u001b[J`);
    said = "";
    output.columns = 25; // The first line takes two now.
    screen.show(["one"]);
    expect(said).toBe("\r\u001b[3Aone\u001b[K\n\u001b[J");
    said = "";
    screen.say("a line");
    expect(said).toBe("\r\u001b[1A\u001b[Ja line\n\rone\u001b[K\n\u001b[J");
    said = "";
    screen.close({ isErased: true });
    screen.close();
    expect(said).toBe("\r\u001b[1A\u001b[J\u001b[?25h");
  });

  test("draws no more lines than the terminal has", () => {
    let said = "";
    const output = {
      isTTY: true,
      columns: 40,
      rows: 4,
      write: (text: string) => (said += text),
    };
    const screen = screenOn(output, {});
    screen.show(["1", "2", "3", "4", "5"]);
    screen.close();
    expect(said.split("\n")).toHaveLength(4);
  });

  test.each([
    ["a pipe", { isTTY: false }, {}],
    ["a dumb terminal", { isTTY: true }, { TERM: "dumb" }],
  ])("only says lines on %s", (_, stream, env) => {
    let said = "";
    const screen = screenOn({ ...stream, write: (text: string) => (said += text) }, env);
    screen.show(["drawn"]);
    screen.say(screen.style("red", "said"));
    screen.close();
    expect(said).toBe("said\n");
  });
});
