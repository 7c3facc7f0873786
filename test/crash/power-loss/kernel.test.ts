// Promise 1 on simulated disks: what the kernel acknowledged, or let a read see, is there after power loss.
import { compiled } from "../../compile-children.ts";
import { describe, expect, test } from "vitest";
import { isDeep, seed, seededRandom, timeoutMs } from "../../depth.ts";
import { chooseCrashPoints } from "./images.ts";
import { recordRun, removeRecording } from "./record.ts";
import type { RecordedProcess } from "./record.ts";
import { countWalGenerations } from "./recording.ts";
import type { Recording } from "./recording.ts";
import { surveyCrashes } from "./verify.ts";
import type { Connection, SurveyResult } from "./verify.ts";

const script = compiled("crash/power-loss/kernel-process.ts");
const notes = isDeep ? 120 : 40;
const crashPoints = isDeep ? 150 : 8;

type Durability = "full" | "normal";

const setUp: RecordedProcess = { script, args: ["set-up"] };

function writer(name: string, durability: Durability): RecordedProcess {
  return {
    script,
    args: ["write", name, String(notes), durability],
    flushDelayMs: 1,
  };
}

function observer(durability: Durability): RecordedProcess {
  return {
    script,
    args: ["observe", "o", "0", durability],
    background: true,
    flushDelayMs: 1,
  };
}

/** Every fact somebody was told is whole, and no call is half there. */
function checkNotes(connection: Connection, marks: readonly string[]): readonly string[] {
  const halves = new Map<string, number>();
  const tables = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'app_note'").all();
  if (tables.length > 0)
    for (const row of connection
      .prepare("SELECT id, count(*) AS halves FROM app_note GROUP BY id")
      .all() as { id: string; halves: number }[])
      halves.set(row.id, row.halves);
  const promised = new Set(marks.map((mark) => (JSON.parse(mark) as { fact: string }).fact));
  return [
    ...[...promised]
      .filter((id) => halves.get(id) !== 2)
      .map((id) => `${id} was promised and is not there`),
    ...[...halves].filter(([, count]) => count !== 2).map(([id]) => `${id} is half there`),
  ];
}

/** Two writers and a reader; a writer that is killed; a recovery. */
function generations(durability: Durability): readonly (readonly RecordedProcess[])[] {
  return [
    [setUp],
    [writer("a", durability), writer("b", durability), observer(durability)],
    [writer("c", durability), { ...writer("d", durability), killAfterCalls: 150 }],
    [writer("e", durability), observer(durability)],
  ];
}

/**
 * While the database file is first written after a flush of the log failed: a
 * power cut there has nothing but the log to make that file whole again.
 */
function whileRecovering({ records }: Recording): readonly number[] {
  const failed = records.findIndex(({ kind }) => kind === "flushFail");
  const [database] = records.filter((record) => record.kind === "create" && record.name === "");
  if (failed < 0 || database?.kind !== "create") return [];
  return [...records.entries()]
    .filter(
      ([index, record]) =>
        index > failed && record.kind === "write" && record.file === database.file,
    )
    .map(([index]) => index + 1)
    .slice(0, isDeep ? 40 : 10);
}

async function survey(
  what: string,
  processes: readonly (readonly RecordedProcess[])[],
): Promise<{ recording: Recording; result: SurveyResult }> {
  const random = seededRandom(seed);
  const recording = await recordRun({ timeoutMs, generations: processes });
  const points = new Set([
    ...chooseCrashPoints(recording, crashPoints, random),
    ...whileRecovering(recording),
  ]);
  const result = await surveyCrashes(recording, {
    crashPoints: [...points].toSorted((a, b) => a - b),
    random,
    checkFacts: checkNotes,
  });
  console.log(
    `power loss, kernel, ${what}: seed ${seed}, ${result.images} images, ${result.imagesFailed} failed; ` +
      `${recording.records.length} records, ${countWalGenerations(recording)} WAL generations`,
  );
  return { recording, result };
}

describe.runIf(process.platform === "linux")("power loss under the kernel", () => {
  test("keeps every fact that was acknowledged or read, whole", async () => {
    const { recording, result } = await survey("full durability", generations("full"));
    expect(result.problems).toEqual([]);
    expect(countWalGenerations(recording)).toBeGreaterThan(3);
    removeRecording(recording);
  });

  test("keeps what was acknowledged after a process whose flush failed, since an open empties the log first", async () => {
    const failing = { ...writer("f", "full"), failFdatasyncAfter: 20 };
    // Linux reports a lost write once to who has the file open: later flushes succeed over the hole.
    const { recording, result } = await survey("a failed flush", [
      [setUp],
      [{ ...failing, failTimes: 1 }],
      [writer("g", "full")],
    ]);
    expect(result.problems).toEqual([]);
    removeRecording(recording);
  });

  test("loses facts without the flush, or the test would prove nothing", async () => {
    const { recording, result } = await survey("no flushes", generations("normal"));
    expect(result.imagesFailed).toBeGreaterThan(0);
    removeRecording(recording);
  });
});
