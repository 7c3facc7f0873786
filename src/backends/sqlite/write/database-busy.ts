import { HoldfastError } from "../../../model/errors.ts";
import { logWriter } from "../log/log-holders.js";
import type { LogWriter } from "../log/log-holders.js";

/** With the path of a file the process that has its lock is named, where Linux tells. */
export function databaseBusy(budgetMs: number, path?: string): HoldfastError {
  const holder = path === undefined ? undefined : logWriter(path);
  return new HoldfastError(
    "DATABASE_BUSY",
    `${titleOf(holder)} held the database's lock for ${budgetMs} ms; nothing was done. ${adviceFor(holder)}`,
    { budgetMs, ...(holder !== undefined && { holder }) },
  );
}

function titleOf(holder: LogWriter | undefined): string {
  if (holder === undefined) return "Another process";
  const { pid, command } = holder;
  return `Process ${pid}${command === undefined ? "" : ` (${command})`}`;
}

function adviceFor(holder: LogWriter | undefined): string {
  return holder?.isStopped === true
    ? `It is stopped, by a signal or a debugger, and until it goes on nobody can write: continue it (kill -CONT ${holder.pid}) or end it, then try again.`
    : "Try again, and look for a process with a long transaction on this file.";
}
