import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder on the same disk as the system's temporary files, gone afterwards. */
export async function inScratch<T>(body: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  try {
    return await body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Machines are noisy: rounds alternate and the middle one speaks. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

export function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

/** The middle of ours and of the ceiling, and of their ratios round by round. */
export function compared(values: readonly number[], ceilings: readonly number[]): object {
  const ratios = values.map((value, round) => value / (ceilings[round] ?? Number.NaN));
  return {
    value: Math.round(median(values)),
    unit: "operations/s",
    ceiling: Math.round(median(ceilings)),
    ratio: rounded(median(ratios)),
    rounds: values.length,
  };
}

/** Processor time of all threads of this process since it was made, in microseconds. */
export function cpuMeter(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
}
