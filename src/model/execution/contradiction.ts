import type { Created, LoggedResponse } from "./event.ts";
import { lifecycleAfter } from "./fold.ts";
import { pendingAfter, type FoldedEvent, type RenewedAfter } from "./fold-pending.ts";
import { isSleeping, type Lifecycle, type PendingState } from "./state.ts";

/**
 * Checks whether a stored state contradicts its log. A renewal moves a lease, and with it the due
 * time, without an event, so a log allows more than one state. Each of those states is the fold
 * after some set of renewals. Testing two sets is enough. After the last lock, a renewal up to the
 * stored instant explains everything that any renewal can. Before it only the largest renewal
 * matters, because the lock set a new lease and only asked whether the old one was live.
 */

/** The compared fields of a state, except `leaseUntil`, which renewals move. */
export interface Standing {
  readonly state: PendingState["kind"];
  readonly lifecycle: Lifecycle;
  readonly due: number | null;
  readonly wakeAt: number | null;
  readonly seen: number | null;
  readonly inbox: string | null;
  readonly ordinal: number | null;
  /** 1 or 0, as the row has it. */
  readonly isClosing: number | null;
  readonly finishedAt: number | null;
  readonly resultKind: string | null;
  readonly deadline: number | null;
  readonly leaseUntil: number | null;
}

/** The creation of an execution, and the events since its last start that decide its state. */
export interface StandingLog {
  readonly created: Created;
  readonly events: readonly FoldedEvent[];
  readonly responses: readonly LoggedResponse[];
}

/** The state that the log requires instead of the stored one. */
export interface Contradiction {
  /** The fields that contradict the log, as in `Standing`; never empty. */
  readonly fields: readonly (keyof Standing)[];
  /** The state by the log without renewals. */
  readonly pending: PendingState;
  readonly lifecycle: Lifecycle;
  readonly deadline: number | null;
  /** False when no worker can hold it according to the log. */
  readonly mayBeKept: boolean;
}

/** Returns the contradiction between a stored state and its log; undefined when there is none. */
export function contradictionOf(
  stored: Standing,
  { created, events, responses }: StandingLog,
): Contradiction | undefined {
  const lifecycle = lifecycleAfter(events.toReversed(), created.isPaused);
  const fold = (renewedAfter: RenewedAfter): PendingState =>
    pendingAfter(events, responses, renewedAfter);
  const faultsOf = (pending: PendingState): readonly (keyof Standing)[] => {
    const said = standingOf(pending, lifecycle, created.deadlineAt);
    return compared.filter((field) => said[field] !== stored[field]);
  };
  const pending = fold(() => []);
  const fields = faultsOf(pending);
  const longest = fold(() => [{ leaseUntil: Number.MAX_SAFE_INTEGER }]);
  const mayBeKept = leaseOf(pending) !== null || leaseOf(longest) !== null;
  const isKeptByNobody = stored.leaseUntil !== null && !mayBeKept;
  if (fields.length === 0 && !isKeptByNobody) return undefined;
  const lastLock = events.findLast(({ event }) => event.kind === "locked")?.version ?? -1;
  const until = stored.due ?? Number.MAX_SAFE_INTEGER;
  const renewed = fold((version) => [
    { leaseUntil: version < lastLock ? Number.MAX_SAFE_INTEGER : until },
  ]);
  const isExplained = faultsOf(renewed).length === 0 && isLeaseExplained(stored, renewed);
  if (isExplained) return undefined;
  const all = isKeptByNobody ? [...fields, "leaseUntil" as const] : fields;
  return { fields: all, pending, lifecycle, deadline: created.deadlineAt, mayBeKept };
}

/** An execution that a renewal postponed is due when the lease ends. */
function isLeaseExplained({ state, due, leaseUntil }: Standing, renewed: PendingState): boolean {
  if (leaseUntil === null || leaseOf(renewed) === null) return leaseUntil === leaseOf(renewed);
  return state !== "pending" || due === leaseUntil;
}

const compared = [
  "state",
  "lifecycle",
  "due",
  "wakeAt",
  "seen",
  "inbox",
  "ordinal",
  "isClosing",
  "finishedAt",
  "resultKind",
  "deadline",
] as const satisfies readonly (keyof Standing)[];

function standingOf(
  pending: PendingState,
  lifecycle: Lifecycle,
  deadline: number | null,
): Standing {
  const on = pending.kind === "blocked" ? pending.on : undefined;
  const sleeping = isSleeping(pending) ? pending : undefined;
  return {
    state: pending.kind,
    lifecycle,
    due: pending.kind === "pending" ? pending.dueAt : null,
    wakeAt: sleeping?.wakeAt ?? null,
    seen: on?.kind === "responses" ? on.seen : (sleeping?.seen ?? null),
    inbox: on?.kind === "joinSet" ? on.joinSet : null,
    ordinal: on?.kind === "joinSet" ? on.ordinal : null,
    isClosing: on?.kind === "joinSet" ? Number(on.isClosing) : null,
    finishedAt: pending.kind === "finished" ? pending.finishedAt : null,
    resultKind: pending.kind === "finished" ? pending.resultKind : null,
    deadline,
    leaseUntil: leaseOf(pending),
  };
}

function leaseOf(pending: PendingState): number | null {
  return pending.kind === "finished" ? null : pending.leaseUntil;
}

/**
 * The kinds of events that decide the state or the lifecycle of an execution. The others, mostly
 * steps, need not be folded.
 */
export const standingKinds: readonly string[] = [
  "created",
  "locked",
  "unlocked",
  "attemptFailed",
  "attemptTimedOut",
  "ownerDied",
  "paused",
  "unpaused",
  "cancellationRequested",
  "parked",
  "unparked",
  "continued",
  "forked",
  "finished",
  "joinNext",
  "joinNextTried",
  "waiting",
] satisfies readonly FoldedEvent["event"]["kind"][];
