import { eventsInvalid } from "./errors.ts";
import type { ControlEvent } from "./event.ts";
import type { ExecutionId } from "../ids/execution-id.ts";

/**
 * Decides which signals a run leaves unread when it is continued. Those belong to the next run.
 * Their numbers are stored as ranges, since a run that receives more than it reads leaves thousands
 * in a row.
 */

/** Numbers of responses from the first to the last, both included. */
export type SeqRange = readonly [first: number, last: number];

/** The most ranges that fit into an event, when read and unread signals alternate. */
export const unreadPiecesMax = 10_000;

/** Returns each number once, in order, with consecutive numbers as one range. */
export function rangesOf(numbers: readonly number[]): readonly SeqRange[] {
  const ranges: [number, number][] = [];
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && number <= last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges;
}

/** True when a number is in one of the sorted ranges. */
export function isInRanges(ranges: readonly SeqRange[], number: number): boolean {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const [first, last] = ranges[middle] as SeqRange;
    if (number < first) high = middle;
    else if (number > last) low = middle + 1;
    else return true;
  }
  return false;
}

type Continued = Extract<ControlEvent, { readonly kind: "continued" }>;

/** A signal that no earlier run has read. */
export interface OpenSignal {
  readonly seq: number;
  /** True when this run took it by name. */
  readonly isTaken: boolean;
}

export interface UnreadDecision {
  /** The signals that the new run may read. */
  readonly unread: readonly number[];
  /** The signals that this run has read. */
  readonly read: readonly number[];
}

/**
 * Divides the open signals into read and unread ones. A signal taken by name is read. A signal that
 * the run did not receive is unread. For the other signals the run may list the unread ones; without
 * a list all of them are unread.
 *
 * @throws HoldfastError `EVENTS_INVALID` when the list names a response that the run cannot have
 * left unread.
 */
export function decideUnread(
  id: ExecutionId,
  { seen, unread }: Pick<Continued, "seen" | "unread">,
  open: readonly OpenSignal[],
): UnreadDecision {
  const isLeft = ({ seq, isTaken }: OpenSignal): boolean =>
    !isTaken && (unread === null || seq > seen || isInRanges(unread, seq));
  const decision: UnreadDecision = {
    unread: open.filter(isLeft).map(({ seq }) => seq),
    read: open.filter((signal) => !isLeft(signal)).map(({ seq }) => seq),
  };
  if (unread === null) return decision;
  const told = unread.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  const known = decision.unread.filter((seq) => isInRanges(unread, seq)).length;
  if (told === known && (unread.at(-1)?.[1] ?? 0) <= seen) return decision;
  throw eventsInvalid(
    id,
    "response",
    "it lists an unread response that it had not seen, that is not a signal, or that was already read.",
  );
}
