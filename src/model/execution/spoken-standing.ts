import { unreachable } from "../errors.ts";
import { spokenDuration, spokenInstant } from "../time/spoken.ts";
import type { Interruption } from "./interruption.ts";
import type { OpenWait } from "./open-waits.ts";
import type { ExecutionState } from "./state.ts";
import type { ExecutionStatus } from "./status.ts";

/** What the words are made of: a summary of a run, and what its log says it waits for. */
export interface Standing {
  /** `unserved` when it is due and nobody runs its function. */
  readonly status: ExecutionStatus | "unserved";
  readonly function: string;
  readonly createdAt: number;
  readonly sleepsUntil: number | null;
  readonly interruption: Interruption | null;
  readonly state: Pick<ExecutionState, "pending" | "failures" | "role">;
  /** Empty when the log was not read: then the words are less exact. */
  readonly waits: readonly OpenWait[];
}

/** From when, and where, somebody reads it. */
export interface Reader {
  readonly now: number;
  readonly timeZone: string;
  /** Where durations are shown beside it, or the words are compared: they change only when the run does. */
  readonly withoutDurations?: true;
}

/**
 * Where a run stands, in words: `sleeps until Tue 09:00`, `waits for signal
 * approval since 2 h`, `is tried again tomorrow 09:00 (2 attempts failed)`.
 */
export function spokenStanding(run: Standing, reader: Reader): string {
  const { pending } = run.state;
  switch (run.status) {
    case "completed":
    case "failed":
    case "cancelled":
    case "timedOut":
      return ended(run, reader);
    case "pending":
      return pending.kind === "pending"
        ? due(pending.dueAt, reader)
        : "is due and waits for a worker";
    case "unserved":
      return `is due${pending.kind === "pending" ? since(pending.dueAt, reader) : ""}, and nobody runs ${run.function}`;
    case "scheduled":
      return scheduled(run, reader);
    case "running":
      return attempts(run) > 0 ? `runs, attempt ${attempts(run) + 1}` : "runs";
    case "blocked":
      return waiting(run, reader);
    case "paused":
    case "cancelling":
    case "parked":
      return interrupted(run, reader);
    default:
      return unreachable(run.status);
  }
}

function due(at: number, reader: Reader): string {
  const late = reader.now - at >= 1_000 ? since(at, reader) : "";
  return `is due${late} and waits for a worker`;
}

function since(at: number, { now, withoutDurations }: Reader): string {
  return withoutDurations === true ? "" : ` since ${spokenDuration(now - at)}`;
}

function ended({ status, state, createdAt }: Standing, reader: Reader): string {
  const word = status === "timedOut" ? "timed out" : status;
  const { pending } = state;
  if (pending.kind !== "finished") return word;
  const at = spokenInstant(pending.finishedAt, reader.now, reader.timeZone);
  return `${word} ${at}, after ${spokenDuration(pending.finishedAt - createdAt)}`;
}

function scheduled(run: Standing, { now, timeZone }: Reader): string {
  const { pending } = run.state;
  const at = pending.kind === "pending" ? ` ${spokenInstant(pending.dueAt, now, timeZone)}` : "";
  const failed = attempts(run);
  if (failed === 0) return `starts${at}`;
  return `is tried again${at} (${failed} ${failed === 1 ? "attempt" : "attempts"} failed)`;
}

/** Of an activity; a workflow has none. */
function attempts({ state }: Standing): number {
  return state.role === "activity" ? state.failures : 0;
}

function interrupted({ interruption, status }: Standing, reader: Reader): string {
  if (interruption === null) return `is ${status}`;
  const sinceThen = since(interruption.since, reader);
  switch (interruption.kind) {
    case "paused":
      return `is paused${sinceThen}`;
    case "cancelling": {
      const { reason, cause } = interruption;
      const why = reason ?? (cause === "deadline" ? "its deadline is over" : "");
      return `is being cancelled${sinceThen}${why === "" ? "" : `: ${why}`}`;
    }
    case "parked":
      return `is parked${sinceThen}: ${interruption.code}`;
    default:
      return unreachable(interruption);
  }
}

/** At most this many are told one by one. */
const waitsToldMax = 3;

function waiting(run: Standing, reader: Reader): string {
  const { now, timeZone } = reader;
  const { waits, sleepsUntil, state } = run;
  if (state.role === "external") return "waits for an answer from outside";
  // Whatever else it waits for: a worker lets it go on.
  if (sleepsUntil !== null && sleepsUntil <= now) return due(sleepsUntil, reader);
  if (waits.length === 0)
    return sleepsUntil === null
      ? "waits"
      : `waits until ${spokenInstant(sleepsUntil, now, timeZone)} at the latest`;
  const told = waits.slice(0, waitsToldMax).map((wait) => spokenWait(wait, reader));
  const more = waits.length - told.length;
  return [...told, ...(more > 0 ? [`${more} more`] : [])].join(", and ");
}

/** `waits for signal approval since 2 h, until tomorrow 09:00` */
export function spokenWait(wait: OpenWait, reader: Reader): string {
  const { now, timeZone } = reader;
  const sinceThen = since(wait.since, reader);
  const instant = (at: number): string => spokenInstant(at, now, timeZone);
  switch (wait.kind) {
    case "sleep":
      return `sleeps until ${instant(wait.until)}`;
    case "signal":
      return `waits for signal ${wait.signal}${sinceThen}${wait.until === null ? "" : `, until ${instant(wait.until)}`}`;
    case "child":
      return `waits for ${wait.function} (${wait.child})${sinceThen}`;
    case "external":
      return `waits for an answer from outside (${wait.external})${sinceThen}`;
    case "retry":
      return `tries step "${wait.step}" again ${instant(wait.until)} (attempt ${wait.attempt} failed)`;
    default:
      return unreachable(wait);
  }
}
