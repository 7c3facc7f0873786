import { unreachable } from "../errors.ts";
import { spokenDuration, spokenInstant } from "../time/spoken.ts";
import { isSuspect } from "./decisions.ts";
import type { Interruption } from "./interruption.ts";
import type { OpenWait } from "./open-waits.ts";
import type { ExecutionState } from "./state.ts";
import type { ExecutionStatus } from "./status.ts";

/** The facts behind the words: a summary of a run, and the open waits of its log. */
export interface Standing {
  /** `unserved` when it is due and no worker serves its function. */
  readonly status: ExecutionStatus | "unserved";
  readonly function: string;
  readonly createdAt: number;
  readonly sleepsUntil: number | null;
  readonly interruption: Interruption | null;
  readonly state: Pick<ExecutionState, "pending" | "failures" | "deaths" | "role">;
  /** Empty if the log was not read; the words are then less exact. */
  readonly waits: readonly OpenWait[];
}

/** The moment and time zone of the reader. */
export interface Reader {
  readonly now: number;
  readonly timeZone: string;
  /** Leaves durations out, for views that show them separately or compare the words. The words then change only with the run. */
  readonly withoutDurations?: true;
}

/**
 * The state of a run in words: `sleeps until Tue 09:00`, `has waited 2 h for
 * signal approval`, `retries tomorrow 09:00 (2 attempts failed)`.
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
        ? due(run, pending.dueAt, reader)
        : "due, waits for a worker";
    case "unserved":
      return `${pending.kind === "pending" ? lateness(pending.dueAt, reader) : "due"}, and no worker serves ${run.function}`;
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

function due({ state }: Standing, at: number, reader: Reader): string {
  const late = lateness(at, reader);
  return isSuspect(state)
    ? `${late}, waits for a worker that runs nothing else, because ${state.deaths} processes died while they held it`
    : `${late}, waits for a worker`;
}

/** `due`, or `overdue by 36 s` from a second on. */
function lateness(at: number, { now, withoutDurations }: Reader): string {
  return withoutDurations === true || now - at < 1_000
    ? "due"
    : `overdue by ${spokenDuration(now - at)}`;
}

/** `waits`, or `has waited 2 h`. */
function waitedSince(at: number, { now, withoutDurations }: Reader): string {
  return withoutDurations === true ? "waits" : `has waited ${spokenDuration(now - at)}`;
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
  return `retries${at} (${failed} ${failed === 1 ? "attempt" : "attempts"} failed)`;
}

/** The failed attempts of an activity; a workflow has none. */
function attempts({ state }: Standing): number {
  return state.role === "activity" ? state.failures : 0;
}

function interrupted(
  { interruption, status }: Standing,
  { now, withoutDurations }: Reader,
): string {
  if (interruption === null) return status;
  const isTimed = withoutDurations !== true;
  const length = spokenDuration(now - interruption.since);
  const ago = isTimed ? ` ${length} ago` : "";
  switch (interruption.kind) {
    case "paused":
      return `paused${ago}`;
    case "cancelling": {
      const { reason, cause } = interruption;
      const why = reason ?? (cause === "deadline" ? "its deadline has passed" : "");
      return `cancelling${isTimed ? ` for ${length}` : ""}${why === "" ? "" : `: ${why}`}`;
    }
    case "parked":
      return `parked${ago}: ${interruption.code}`;
    default:
      return unreachable(interruption);
  }
}

/** The largest number of waits that are listed one by one. */
const waitsToldMax = 3;

function waiting(run: Standing, reader: Reader): string {
  const { now, timeZone } = reader;
  const { waits, sleepsUntil, state } = run;
  if (state.role === "external") return "waits for an answer from outside";
  // A worker can resume it now, even if it also waits for something else.
  if (sleepsUntil !== null && sleepsUntil <= now) return due(run, sleepsUntil, reader);
  if (waits.length === 0)
    return sleepsUntil === null
      ? "waits"
      : `waits until ${spokenInstant(sleepsUntil, now, timeZone)} at the latest`;
  const told = waits.slice(0, waitsToldMax).map((wait) => spokenWait(wait, reader));
  const more = waits.length - told.length;
  return [...told, ...(more > 0 ? [`${more} more`] : [])].join(", and ");
}

/** `has waited 2 h for signal approval, until tomorrow 09:00` */
export function spokenWait(wait: OpenWait, reader: Reader): string {
  const { now, timeZone } = reader;
  const waited = waitedSince(wait.since, reader);
  const instant = (at: number): string => spokenInstant(at, now, timeZone);
  switch (wait.kind) {
    case "sleep":
      return `sleeps until ${instant(wait.until)}`;
    case "signal":
      return `${waited} for signal ${wait.signal}${wait.until === null ? "" : `, until ${instant(wait.until)}`}`;
    case "child":
      return `${waited} for ${wait.function} (${wait.child})${wait.parked === undefined ? "" : `, which is parked: ${wait.parked}`}`;
    case "external":
      return `${waited} for an answer from outside (${wait.external})`;
    case "retry":
      return `retries step "${wait.step}" ${instant(wait.until)} (attempt ${wait.attempt} failed)`;
    default:
      return unreachable(wait);
  }
}
