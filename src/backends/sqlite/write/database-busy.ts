import { HoldfastError } from "../../../model/errors.ts";
import { logWriter } from "../log/log-holders.js";
import type { LogWriter } from "../log/log-holders.js";

/**
 * The error for a lock that stayed busy. With a file's path it names the process that holds the
 * lock, where Linux reports it.
 */
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
    ? `A signal or a debugger has stopped it, and no process can write until it continues: resume it (kill -CONT ${holder.pid}) or end it, then retry.`
    : "Retry, and look for a process with a long transaction on this file.";
}
