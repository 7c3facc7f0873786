import type { Driver } from "../drivers/drivers.ts";
import { isHoldfastError } from "../../../model/errors.ts";
import type { HeavyCall, OpenFile } from "./heavy-call.ts";
import { heavyFailure } from "./heavy-failures.ts";
import type { HeavyRequests } from "./heavy-requests.ts";
import { inKillableProcess } from "./killable-process.ts";

export interface CheckReport {
  readonly ok: boolean;
  /** Problems in SQLite's words: tables, pages and rows, never values. */
  readonly problems: readonly string[];
  /** The number of tables checked. */
  readonly tables: number;
  /** Unchecked tables: the app's own in a quick check. */
  readonly skipped: readonly string[];
}

/**
 * Checks our tables and SQLite's own, each in its own snapshot: that pages are well formed and rows
 * in order, but not that indexes agree with them. The app's tables are listed and skipped.
 */
export async function quickCheck(
  requests: HeavyRequests,
  { signal, onProgress }: HeavyCall,
): Promise<CheckReport> {
  const problems: string[] = [];
  let checked: readonly string[] = [];
  let skipped: readonly string[] = [];
  try {
    const names = await requests.ask<readonly string[]>("tables", {}, signal);
    checked = names.filter((name) => /^(holdfast|sqlite)_/.test(name));
    skipped = names.filter((name) => !checked.includes(name));
  } catch (error) {
    problems.push(damage(error));
  }
  const total = checked.length;
  for (const [done, table] of checked.entries()) {
    onProgress({ done, total });
    try {
      const found = await requests.ask<string[]>("check", { table }, signal);
      problems.push(...found.map((problem) => `${table}: ${problem}`));
    } catch (error) {
      problems.push(`${table}: ${damage(error)}`);
    }
  }
  onProgress({ done: total, total });
  return report({ problems, tables: checked.length, skipped });
}

/**
 * Checks the whole file in one snapshot, the app's pages and indexes included, then the references
 * between our tables. It pins the log until it ends. It runs in its own process, so that it can be
 * given up at any moment.
 */
export async function fullCheck(
  driver: Driver,
  file: OpenFile,
  { signal, onProgress }: HeavyCall,
): Promise<CheckReport> {
  try {
    const found = await inKillableProcess<Omit<CheckReport, "ok">>(driver, {
      job: "check",
      source: { ...file },
      hear(message) {
        if (message.kind !== "progress") return;
        onProgress({ done: message.done, total: message.total });
      },
      failure: heavyFailure,
      signal,
    });
    return report(found);
  } catch (error) {
    return report({ problems: [damage(error)], tables: 0, skipped: [] });
  }
}

/** The text of damage that stops SQLite, which is a finding. Any other error is thrown. */
function damage(error: unknown): string {
  if (!isHoldfastError(error) || error.code !== "DATABASE_DAMAGED") throw error;
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function report(found: Omit<CheckReport, "ok">): CheckReport {
  return { ...found, ok: found.problems.length === 0 };
}
