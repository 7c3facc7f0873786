/** The end of an await-event. A `revoked` one can be neither answered nor waited for. */
export type AwaitEnd = "resolved" | "failed" | "timedOut" | "cancelled" | "revoked";

/** The outcome of an await-event, as its waiters see it. */
export type AwaitOutcome<Value, Failure> =
  | { readonly kind: "resolved"; readonly value: Value }
  | { readonly kind: "failed"; readonly error: Failure }
  /** No answer came within the time given when the event was opened. */
  | { readonly kind: "timedOut" }
  | { readonly kind: "cancelled" };

/** The facts that decide how an await-event may end. */
export interface AwaitState {
  readonly state: "open" | AwaitEnd;
  /** The instant of its timeout; null for never. */
  readonly dueAt: number | null;
  /** The hash of the answer, equal for equal answers; null when the event ended without one. */
  readonly hash: string | null;
}

/** The ending that a caller asks for. */
export type AwaitWish =
  | { readonly kind: "resolved" | "failed"; readonly hash: string }
  | { readonly kind: "cancelled" | "revoked" | "timedOut" };

export type AwaitDecision =
  /** The event ends this way now. */
  | { readonly kind: "settle"; readonly end: AwaitEnd; readonly at: number }
  /** The event already ended this way, by an equal request. */
  | { readonly kind: "replayed" }
  /** The event already ended in another way. */
  | { readonly kind: "late" }
  /** The caller asked only for the timeout, and the time has not passed. */
  | { readonly kind: "open" };

/**
 * Decides how an await-event ends. The first request wins. A timeout that has passed counts as
 * first, even before it is recorded.
 */
export function decideAwait(
  { state, dueAt, hash }: AwaitState,
  wish: AwaitWish,
  now: number,
): AwaitDecision {
  if (state !== "open") {
    const isSame = wish.kind === state && (!("hash" in wish) || wish.hash === hash);
    return { kind: isSame ? "replayed" : "late" };
  }
  // The instant of the timeout, not the instant at which it was noticed.
  if (dueAt !== null && dueAt <= now) return { kind: "settle", end: "timedOut", at: dueAt };
  return wish.kind === "timedOut" ? { kind: "open" } : { kind: "settle", end: wish.kind, at: now };
}

/** True when the timeout has passed and is not recorded yet. */
export function isOverdue(
  { state, dueAt }: Pick<AwaitState, "state" | "dueAt">,
  now: number,
): boolean {
  return state === "open" && dueAt !== null && dueAt <= now;
}

const ends: Readonly<Record<AwaitEnd, true>> = {
  resolved: true,
  failed: true,
  timedOut: true,
  cancelled: true,
  revoked: true,
};

/** True for a stored await-event that Holdfast could have written. */
export function isAwaitState(found: {
  readonly state: string;
  readonly settledAt: number | null;
  readonly hash: string | null;
  readonly payload: string | null;
}): boolean {
  const { state, settledAt, hash, payload } = found;
  const isAnswered = state === "resolved" || state === "failed";
  return (
    (state === "open" ? settledAt === null : Object.hasOwn(ends, state) && settledAt !== null) &&
    (hash !== null) === isAnswered &&
    (payload !== null) === isAnswered
  );
}

/** Returns the outcome of an ended await-event; undefined for a revoked one. */
export function outcomeOf<Value, Failure>(
  end: AwaitEnd,
  read: { readonly value: () => Value; readonly error: () => Failure },
): AwaitOutcome<Value, Failure> | undefined {
  if (end === "resolved") return { kind: end, value: read.value() };
  if (end === "failed") return { kind: end, error: read.error() };
  return end === "revoked" ? undefined : { kind: end };
}
