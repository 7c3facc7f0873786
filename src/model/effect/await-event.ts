/** How an await-event ended. `revoked` has no outcome: it can be neither answered nor waited for. */
export type AwaitEnd = "resolved" | "failed" | "timedOut" | "cancelled" | "revoked";

/** The outcome of an await-event, for those who wait for it. */
export type AwaitOutcome<Value, Failure> =
  | { readonly kind: "resolved"; readonly value: Value }
  | { readonly kind: "failed"; readonly error: Failure }
  /** It was not answered within the time that was given when it was opened. */
  | { readonly kind: "timedOut" }
  | { readonly kind: "cancelled" };

/** What decides how an await-event may end. */
export interface AwaitState {
  readonly state: "open" | AwaitEnd;
  /** From this instant on it has timed out; null for never. */
  readonly dueAt: number | null;
  /** Equal for equal answers; null for ends that are no answer. */
  readonly hash: string | null;
}

/** How a caller wants to end it. */
export type AwaitWish =
  | { readonly kind: "resolved" | "failed"; readonly hash: string }
  | { readonly kind: "cancelled" | "revoked" | "timedOut" };

export type AwaitDecision =
  /** It ends this way, now. */
  | { readonly kind: "settle"; readonly end: AwaitEnd; readonly at: number }
  /** It ended this way before, by the same wish. */
  | { readonly kind: "replayed" }
  /** It ended in another way before. */
  | { readonly kind: "late" }
  /** Its time is not over yet, and that was all that was wished. */
  | { readonly kind: "open" };

/**
 * Decides how an await-event ends: the first wish wins, and an instant that is
 * over is the first of all, also when that is not recorded yet.
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
  // When it was over, not when that was noticed: groups put their members in that order.
  if (dueAt !== null && dueAt <= now) return { kind: "settle", end: "timedOut", at: dueAt };
  return wish.kind === "timedOut" ? { kind: "open" } : { kind: "settle", end: wish.kind, at: now };
}

/** Whether its time is over and that is not recorded yet. */
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

/** Whether a stored await-event can have been written by us. */
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

/** The outcome of one that has ended; undefined when that was by being revoked. */
export function outcomeOf<Value, Failure>(
  end: AwaitEnd,
  read: { readonly value: () => Value; readonly error: () => Failure },
): AwaitOutcome<Value, Failure> | undefined {
  if (end === "resolved") return { kind: end, value: read.value() };
  if (end === "failed") return { kind: end, error: read.error() };
  return end === "revoked" ? undefined : { kind: end };
}
