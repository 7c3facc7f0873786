import { expect, test } from "vitest";
import type { OwnerId } from "../../../model/ids/prefixed-id.ts";
import type { ExecutionSummary } from "../../../stores/execution/read/summary.ts";
import { findingsOf, type Symptoms } from "./findings.ts";

const now = 10_000_000;
const mebibyte = 1_048_576;
const file = {
  path: "app.db",
  fileSystem: "ext4",
  bytes: 4 * mebibyte,
  logBytes: 0,
  freeBytes: 9_000 * mebibyte,
  logReaders: [],
};
const well: Symptoms = {
  facts: {
    engine: "SQLite 3.50.4 (x)",
    schema: 11,
    move: undefined,
    file,
    processes: [],
  },
  warnings: [],
  parked: [],
  hasMoreParked: false,
  damaged: [],
  unserved: [],
  nextTimerAt: now + 5_000,
  clockOffsetMs: -20,
  now,
};

function problems(symptoms: Partial<Symptoms>): readonly string[] {
  return findingsOf({ ...well, ...symptoms })
    .filter(({ level }) => level === "problem")
    .map(({ about, text, fix }) => `${about}: ${text} → ${fix}`);
}

test("nothing is wrong with what is well, and it is told what there is", () => {
  expect(findingsOf(well)).toEqual([
    { level: "ok", about: "database", text: "SQLite 3.50.4 (x), schema 11" },
    {
      level: "ok",
      about: "file",
      text: "4.0 MiB, log 0 bytes, 8.8 GiB free on ext4",
    },
    {
      level: "ok",
      about: "processes",
      text: "no process is known to have it open for writing",
    },
  ]);
});

test("a log that was held back is told with who holds it", () => {
  const held = {
    ...file,
    logBytes: 300 * mebibyte,
    logReaders: ["47 (sqlite3)"],
  };
  expect(problems({ facts: { ...well.facts, file: held } })).toEqual([
    "log: the write-ahead log has grown to 300 MiB, held back by process 47 (sqlite3) → " +
      "end the reader (a database shell left open, a long backup), or start a worker, which restarts the log",
  ]);
});

test("where it is not known who holds a log back, it is told how to find out", () => {
  const held = { ...file, logBytes: 300 * mebibyte };
  expect(problems({ facts: { ...well.facts, file: held } })).toEqual([
    expect.stringMatching(/: a reader holds it back, .* → .*lsof app\.db-shm names the processes/),
  ]);
});

test("a file that the machine or its container takes along is noted, which is no problem", () => {
  const on = (fileSystem: string | undefined) =>
    findingsOf({
      ...well,
      facts: { ...well.facts, file: { ...file, fileSystem } },
    }).filter(({ about }) => about === "file");
  expect(on("tmpfs")).toMatchObject([
    { level: "ok", text: expect.stringMatching(/ free on tmpfs$/) as string },
    { level: "note", text: expect.stringContaining("in memory") as string },
  ]);
  expect(on("overlay")).toMatchObject([
    { level: "ok" },
    { level: "note", fix: expect.stringContaining("a volume") as string },
  ]);
  expect(on(undefined)).toMatchObject([
    { level: "ok", text: expect.stringMatching(/ free$/) as string },
  ]);
});

test("a disk that is nearly full is told", () => {
  const full = { ...file, freeBytes: 3 * mebibyte };
  expect(problems({ facts: { ...well.facts, file: full } })).toEqual([
    "disk: only 3.0 MiB are free → free some space; a full disk stops all writes",
  ]);
});

test("processes are named, those that died are not", () => {
  const owner = { id: "Own_1" as OwnerId, host: "box", openedAt: now - 60_000 };
  const processes = [
    { ...owner, diedAt: null, liveness: "alive" },
    { ...owner, id: "Own_2" as OwnerId, diedAt: null, liveness: "unknown" },
    { ...owner, id: "Own_3" as OwnerId, diedAt: now, liveness: "dead" },
  ] as const;
  expect(findingsOf({ ...well, facts: { ...well.facts, processes } })).toContainEqual({
    level: "ok",
    about: "processes",
    text: "Own_1 on box for 1 min; Own_2 on box for 1 min (may be gone)",
  });
});

test("parked runs are counted by why, with an example and the way out", () => {
  const run = (id: string, code: string): ExecutionSummary =>
    ({
      id,
      function: "f",
      interruption: { kind: "parked", code },
    }) as ExecutionSummary;
  expect(problems({ parked: [run("a", "X"), run("b", "X"), run("c", "Y")] })).toEqual([
    "parked: 2 runs are parked with X, such as a of f → npx holdfast show a, fix the code, start a worker with it, then npx holdfast unpark a",
    "parked: 1 run is parked with Y, such as c of f → npx holdfast show c, fix the code, start a worker with it, then npx holdfast unpark c",
  ]);
});

test("functions that nobody runs, late timers, clocks and warnings are told", () => {
  expect(
    problems({
      unserved: [{ function: "f", id: "a", due_at: now - 5_000 }],
      nextTimerAt: now - 120_000,
      clockOffsetMs: -4_000,
      warnings: ["fsync is off"],
    }),
  ).toEqual([
    "warning: fsync is off → follow the warning",
    "unserved: no worker serves f: a is overdue by 5 s → start a worker that serves f: holdfast.work([…])",
    "timers: a timer is overdue by 2 min, because no worker runs → start a worker",
    "clock: this machine and the server differ by 4 s → synchronise their clocks",
  ]);
});
