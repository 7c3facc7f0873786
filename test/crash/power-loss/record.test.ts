import { copyFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { seed, seededRandom, timeoutMs } from "../../depth.ts";
import { chooseCrashPoints } from "./images.ts";
import { recordRun, removeRecording } from "./record.ts";
import { livePath } from "./recording.ts";
import { surveyCrashes } from "./verify.ts";
import { calls, checkCalls, setUp, writer } from "./workload.ts";

// shim.test.ts says why it needs Linux.
const onLinux = process.platform === "linux";

describe.runIf(onLinux)("the recording", () => {
  test("does not hold other processes' writes back while a flush is running", async () => {
    const recording = await recordRun({
      timeoutMs,
      generations: [[setUp], [writer("a", 1, "flushed"), writer("b", 2, "flushed")]],
    });
    const running = new Map<number, number>();
    let overlapping = 0;
    for (const record of recording.records) {
      if (record.kind === "flushBegin") running.set(record.flush, record.pid);
      if (record.kind === "flushEnd") running.delete(record.flush);
      if (record.kind === "write" && [...running.values()].some((pid) => pid !== record.pid))
        overlapping += 1;
    }
    expect(overlapping).toBeGreaterThan(0);
    removeRecording(recording);
  });

  test("stays exact when a process dies between two calls", async () => {
    const recording = await recordRun({
      timeoutMs,
      generations: [
        [setUp],
        [{ ...writer("a", 1, "flushed"), killAfterCalls: 100 }],
        [writer("a", 2, "flushed")],
      ],
    });
    // recordRun has compared the replayed log with the real files.
    expect(recording.cutShort).toBe(false);
    const pids = new Set(recording.records.map((record) => record.pid));
    expect(pids.size).toBe(3);
    removeRecording(recording);
  });

  test("starts from a database that was there before", async () => {
    const first = await recordRun({
      timeoutMs,
      generations: [[setUp], [writer("a", 1, "flushed")]],
    });
    const recording = await recordRun({
      timeoutMs,
      prepare: (database) => copyFileSync(livePath(first.directory), database),
      generations: [[writer("a", 2, "flushed")]],
    });
    const random = seededRandom(seed);
    const crashPoints = [0, ...chooseCrashPoints(recording, 5, random)];
    const result = await surveyCrashes(recording, {
      crashPoints,
      random,
      checkFacts: (connection, marks) =>
        checkCalls(connection, [`{"acknowledged":{"a":${calls}}}`, ...marks]),
    });
    expect(result.problems).toEqual([]);
    removeRecording(first);
    removeRecording(recording);
  });

  test("refuses a run that wrote nothing to the database", async () => {
    const idle = fileURLToPath(new URL("./content.ts", import.meta.url));
    await expect(recordRun({ timeoutMs, generations: [[{ script: idle }]] })).rejects.toThrow(
      "Nothing was recorded",
    );
  });
});
