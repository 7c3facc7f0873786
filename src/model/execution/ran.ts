import type { ExecutionEvent } from "./event.ts";

/**
 * The instants at which a body began and ended, as offsets in milliseconds from the instant of its
 * event: `[-301, -2]`. Several bodies may end before one append, so the event alone tells only when
 * they were recorded.
 */
export type Ran = readonly [began: number, ended: number];

/** The offsets of a body from an instant after it. A clock that was set back moves neither behind it. */
export function ranBefore(at: number, began: number, ended: number): Ran {
  const end = Math.min(ended, at);
  return [Math.min(began, end) - at, end - at];
}

/** True for two offsets that a body may have. */
export function isRan(value: unknown): value is Ran {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [began, ended] = value as readonly unknown[];
  return (
    Number.isSafeInteger(began) &&
    Number.isSafeInteger(ended) &&
    (began as number) >= -furthest &&
    (began as number) <= (ended as number) &&
    (ended as number) <= 0
  );
}

/** The distance between 1970 and the last instant that a Date can represent. */
const furthest = 8.64e15;

/** The same event, recorded later than at the instant from which its offsets were measured. */
export function recordedLater<E extends ExecutionEvent>(event: E, laterMs: number): E {
  const { ran } = event as { readonly ran?: Ran };
  if (ran === undefined || laterMs === 0) return event;
  return { ...event, ran: [ran[0] - laterMs, ran[1] - laterMs] };
}
