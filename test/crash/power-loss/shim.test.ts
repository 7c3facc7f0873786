// The power-loss tool tried on plain better-sqlite3: where the protocol is sound nothing is lost, and each control, which
// breaks it in one place, must lose something, or the tool proves nothing.
import { describe, expect, test } from "vitest";
import { isDeep, seed, seededRandom, timeoutMs } from "../../depth.ts";
import { chooseCrashPoints } from "./images.ts";
import { recordRun, removeRecording } from "./record.ts";
import { countWalGenerations } from "./recording.ts";
import type { Recording } from "./recording.ts";
import { surveyCrashes } from "./verify.ts";
import type { SurveyResult } from "./verify.ts";
import { afterMarks, calls, checkCalls, checkpointer, setUp, writer } from "./workload.ts";

const crashPointCount = Number(process.env["HOLDFAST_TEST_ROUNDS"] ?? (isDeep ? 300 : 10));

const onLinux = process.platform === "linux";
if (!onLinux)
  console.warn(
    "SKIPPED: the power-loss tests record with an LD_PRELOAD library, which needs Linux.",
  );

function report(what: string, recording: Recording, result: SurveyResult): void {
  console.log(
    `power loss, ${what}: seed ${seed}, ${result.images} images, ${result.imagesFailed} failed; ` +
      `${recording.records.length} records, ${countWalGenerations(recording)} WAL generations; ` +
      `recorded in ${recording.directory} (removed when the test passes)`,
  );
}

function crashPointOf(problem: string): number {
  return Number(/after (\d+) records/.exec(problem)?.[1]);
}

describe.runIf(onLinux)("power loss on a plain SQLite database", () => {
  test("keeps every fact that was flushed before it was acknowledged or observed", async () => {
    const random = seededRandom(seed);
    const recording = await recordRun({
      timeoutMs,
      generations: [
        [setUp],
        [writer("a", 1, "flushed"), writer("b", 2, "flushed"), checkpointer(3, "flushed")],
        // One writer dies in the middle: the next generation begins with a recovery.
        [
          writer("a", 4, "flushed"),
          {
            ...writer("b", 5, "flushed"),
            killAfterCalls: 20 + Math.floor(random() * calls * 5),
          },
        ],
        [writer("a", 6, "flushed"), writer("b", 7, "flushed"), checkpointer(8, "flushed")],
      ],
    });
    const crashPoints = chooseCrashPoints(recording, crashPointCount, random);
    const result = await surveyCrashes(recording, {
      crashPoints,
      random,
      checkFacts: checkCalls,
    });
    report("sound", recording, result);
    expect(result.problems).toEqual([]);
    expect(result.images).toBe(crashPoints.length * 4);
    expect(countWalGenerations(recording)).toBeGreaterThan(10);
    expect(recording.cutShort).toBe(false);
    removeRecording(recording);
  });

  test("loses facts that were acknowledged before their flush", async () => {
    const random = seededRandom(seed);
    const recording = await recordRun({
      timeoutMs,
      generations: [
        [setUp],
        [writer("a", 1, "unflushed"), writer("b", 2, "unflushed"), checkpointer(3, "flushed")],
      ],
    });
    const crashPoints = chooseCrashPoints(recording, crashPointCount, random);
    const result = await surveyCrashes(recording, {
      crashPoints,
      random,
      checkFacts: checkCalls,
    });
    report("control, acknowledged before the flush", recording, result);
    // Lost, but never damaged or half there: SQLite itself is sound without our flush.
    expect(result.problems.filter((problem) => !problem.includes("lost: "))).toEqual([]);
    expect(result.imagesFailed).toBeGreaterThan(0);
    removeRecording(recording);
  });

  test("damages a database whose own flushes are switched off", async () => {
    const random = seededRandom(seed);
    const env = { WORKLOAD_SYNCHRONOUS: "OFF" };
    const recording = await recordRun({
      timeoutMs,
      generations: [
        [setUp],
        [
          { ...writer("a", 1, "flushed"), env },
          { ...writer("b", 2, "flushed"), env },
          { ...checkpointer(3, "flushed"), env },
        ],
      ],
    });
    // Of ten images none was damaged once: most writes reach the disk in order.
    const crashPoints = chooseCrashPoints(recording, 2 * crashPointCount, random);
    const result = await surveyCrashes(recording, {
      crashPoints,
      random,
      checkFacts: checkCalls,
    });
    report("control, synchronous off", recording, result);
    // More than lost facts: damaged pages or calls that are half there.
    const damage = result.problems.filter((problem) => !problem.includes("lost: "));
    expect(damage.length).toBeGreaterThan(0);
    removeRecording(recording);
  });

  test("loses facts that another process observed before their flush", async () => {
    const random = seededRandom(seed);
    const recording = await recordRun({
      timeoutMs,
      generations: [
        [setUp],
        [writer("a", 1, "flushed"), writer("b", 2, "flushed"), checkpointer(3, "unflushed")],
      ],
    });
    const crashPoints = afterMarks(recording, "observed");
    const result = await surveyCrashes(recording, {
      crashPoints,
      random,
      modes: ["dropped"],
      checkFacts: checkCalls,
    });
    report("control, observed before the flush", recording, result);
    expect(result.imagesFailed).toBeGreaterThan(0);
    removeRecording(recording);
  });

  test("loses facts acknowledged by a writer that goes on after one failed flush", async () => {
    const random = seededRandom(seed);
    const recording = await recordRun({
      timeoutMs,
      generations: [
        [setUp],
        [
          {
            ...writer("a", 1, "flushed"),
            // Closing would copy the WAL to the database and so save what the flush lost.
            env: { WORKLOAD_REOPENS: "never" },
            failFdatasyncAfter: 10,
            failTimes: 1,
          },
        ],
      ],
    });
    const [failedAt = 0, ...others] = afterMarks(recording, "failed");
    expect(others).toEqual([]);
    const result = await surveyCrashes(recording, {
      crashPoints: afterMarks(recording, "acknowledged"),
      random,
      modes: ["dropped"],
      checkFacts: checkCalls,
    });
    report("control, going on after a failed flush", recording, result);
    const before = result.problems.filter((problem) => crashPointOf(problem) < failedAt);
    expect(before).toEqual([]);
    expect(result.imagesFailed).toBeGreaterThan(0);
    removeRecording(recording);
  });
});
