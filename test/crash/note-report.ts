import { rows, sql, type Database } from "../../src/kernel.ts";
import type { Child } from "./child.ts";

/** Ids with both halves, and ids with one: the latter must not exist. */
export async function notes(database: Database): Promise<{ whole: Set<string>; half: string[] }> {
  const found = await database.read("notes", () =>
    rows<{ id: string; halves: number }>(
      sql`SELECT id, count(*) AS halves FROM app_note GROUP BY id`,
    ),
  );
  return {
    whole: new Set(found.filter((note) => note.halves === 2).map((note) => note.id)),
    half: found.filter((note) => note.halves !== 2).map((note) => note.id),
  };
}

/** What a process running note-writer.ts said was acknowledged. */
export function acknowledged(child: Child): string[] {
  return child.lines.filter((line) => line !== "open" && line !== "closed" && !isReport(line));
}

/** What such a process, asked for it, reports at its end. */
export interface WriterReport {
  readonly restarts: number;
  readonly loopDelayMs: {
    readonly p50: number;
    readonly p99: number;
    readonly max: number;
  };
}

export function reportOf(child: Child): WriterReport {
  const line = child.lines.find(isReport) ?? "";
  return JSON.parse(line.slice("report ".length)) as WriterReport;
}

const isReport = (line: string): boolean => line.startsWith("report ");
