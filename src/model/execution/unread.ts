import { eventsInvalid } from "./errors.ts";
import type { ControlEvent } from "./event.ts";
import type { ExecutionId } from "../ids/execution-id.ts";

/**
 * Which signals a run leaves unread when it starts anew: those belong to the
 * next one. Their numbers are kept as ranges, since a run that is sent more
 * than it reads leaves thousands in a row.
 */

/** Numbers of responses from the first to the last, both included. */
export type SeqRange = readonly [first: number, last: number];

/** So many pieces fit into an event: read and unread ones that alternate. */
export const unreadPiecesMax = 10_000;

/** Each number once, in order, those in a row as one range. */
export function rangesOf(numbers: readonly number[]): readonly SeqRange[] {
  const ranges: [number, number][] = [];
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && number <= last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges;
}

/** Whether a number is in one of some ranges, which are in order. */
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

/** A signal that no run before this one has read. */
export interface OpenSignal {
  readonly seq: number;
  /** True when this one took it by name. */
  readonly isTaken: boolean;
}

export interface UnreadDecision {
  /** What the new run may read. */
  readonly unread: readonly number[];
  /** What this one has read. */
  readonly read: readonly number[];
}

/**
 * What was taken by name is read. Of the rest the run says what it has not
 * read of what it had seen, if it says anything; what it had not seen it
 * cannot have read.
 *
 * @throws HoldfastError `EVENTS_INVALID` when it speaks of what it cannot have left unread.
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
    "it leaves a response unread that it had not seen, that is no signal, or that was read before.",
  );
}
