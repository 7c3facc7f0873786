import { isFinal, isHoldfastError, type HoldfastError } from "../../model/errors.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import type { StoredError } from "../../model/values/stored-error.ts";
import type { ExpireReport } from "../../stores/execution/timers/expire-timers.ts";
import { isPassing } from "../failures.ts";
import { pauseBefore } from "../pauses.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { Notice } from "../runtime-event.ts";

/**
 * Handles due times: answers sleeps that are over, takes expired locks, ends runs that missed
 * their deadline, and releases what dead processes held. It sleeps exactly until the next
 * instant, so a million sleeping runs cost nothing.
 */
export async function keepTime(
  context: RuntimeContext,
  signal: AbortSignal,
  onFinal: (error: HoldfastError) => void,
): Promise<void> {
  const { database, tell } = context;
  const stop = database.subscribe((hint) => {
    if (hint.kind === "death") void releaseDead(context, hint.owner, signal);
  });
  // An idle worker only listens, which never fails: nothing else would report an outage.
  const stopWatching = database.watchOutages((outage) =>
    tell(outage === undefined ? regained : unreached(outage)),
  );
  try {
    await expireUntil(context, signal, onFinal);
  } finally {
    stop();
    stopWatching();
  }
}

const regained: Notice = {
  level: "info",
  message: "The database can be reached again.",
  details: {},
};

function unreached({ code, message }: HoldfastError): Notice {
  return {
    level: "warn",
    message: `The database cannot be reached; retrying: ${message}`,
    details: { code },
  };
}

async function expireUntil(
  context: RuntimeContext,
  signal: AbortSignal,
  onFinal: (error: HoldfastError) => void,
): Promise<void> {
  const { clock, tell } = context;
  const { executions } = context.pages;
  let failures = 0;
  while (!signal.aborted)
    try {
      await executions.waitForTimer({ signal });
      const report = await executions.expireTimers({ signal });
      const { delays, locks, deadlines, damaged } = report;
      reportNotes(context, report);
      // Rows that no worker can handle stay due: they must not be retried without a pause.
      const isStuck = damaged.length > 0 && delays + locks + deadlines === 0;
      if (isStuck) await pauseBefore(clock, 10, signal);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (isHoldfastError(error) && error.code === "DATABASE_CLOSED") return;
      if (isFinal(error)) return onFinal(error);
      tell({
        level: "warn",
        message: `Could not look for timers; retrying: ${(error as Error).message}`,
        details: {},
      });
      await pauseBefore(clock, failures, signal);
      failures += 1;
    }
}

/** Reports what was recorded of runs without their code, by the process that recorded it. */
export function reportNotes(
  { reports }: Pick<RuntimeContext, "reports">,
  {
    parked,
    cancelled = [],
    ended = [],
    attemptsLost = [],
  }: Pick<ExpireReport, "parked"> & Partial<ExpireReport>,
): void {
  for (const { code, reason, ...run } of parked)
    // The reason is the same for every run, and a process warning shows no details.
    reports.parked(run, { code, reason: `Run ${run.id} is parked. ${reason}` });
  for (const { reason, ...run } of cancelled)
    reports.convicted(run, `Run ${run.id} is being cancelled. ${reason} Its cleanup runs.`);
  for (const { result, unread = 0, ...run } of ended) {
    reports.endedAs(run, result.kind, () => result);
    if (unread > 0) reports.unread(run, unread);
  }
  for (const { dueAt: retryAt, ...run } of attemptsLost)
    reports.attemptFailed(run, { retryAt, error: attemptLost });
}

const attemptLost: StoredError = {
  name: "AttemptLost",
  message: "its worker died, or did not renew its lock",
};

async function releaseDead(
  context: RuntimeContext,
  owner: OwnerId,
  signal: AbortSignal,
): Promise<void> {
  const { clock, tell } = context;
  for (let failures = 0; !signal.aborted; failures += 1)
    try {
      return reportNotes(context, await context.pages.executions.releaseDead(owner));
    } catch (error) {
      if (!isPassing(error)) {
        if (!signal.aborted)
          tell({
            level: "warn",
            message: `Could not release the runs of a process that died; they stay locked until its leases expire: ${(error as Error).message}`,
            details: {},
          });
        return;
      }
      await pauseBefore(clock, failures, signal);
    }
}
