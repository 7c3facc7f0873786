import {
  contradictionOf,
  standingKinds,
  type Contradiction,
  type Standing,
} from "../../../model/execution/contradiction.ts";
import {
  isControlKind,
  type Created,
  type LoggedResponse,
} from "../../../model/execution/event.ts";
import { payloadField } from "../../../model/execution/event-payload.ts";
import type { FoldedEvent } from "../../../model/execution/fold-pending.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { isHistoryKind } from "../../../model/execution/history-event.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { undamaged } from "../../damage.ts";
import { eventOf, responseOf, type EventRow, type ResponseRow } from "../event-row.ts";
import { eventFault } from "../log/event-fields.ts";
import { stateColumns, type StateRow } from "../state-row.ts";

/** The row of an execution beside the part of its log that determines the row. */

export interface StandingRow extends StateRow {
  readonly deadline_at: number | null;
}

export const standingRowColumns: Statement = sql`${stateColumns}, deadline_at`;

/** An event without the user's value, and with its body only where that is folded. */
export interface StandingEvent extends Omit<EventRow, "payload"> {
  readonly execution: number;
}

export type StandingResponse = Omit<ResponseRow, "payload"> & { readonly execution: number };

/** The number of events and responses that must be read to judge a row. */
export function sizeOf(row: StandingRow): number {
  const { version, history_from, responses, responses_from } = row;
  return 2 + Math.max(0, version - history_from) + Math.max(0, responses - responses_from);
}

const notWhole = "Its log is damaged, so its state cannot be compared.";
const wrongStart = "It does not begin where its log was last started.";

/** The result once the whole log has been read. */
export type Judgement =
  | { readonly kind: "agrees" }
  | { readonly kind: "contradicts"; readonly contradiction: Contradiction }
  /**
   * The row cannot be judged. `isStart` is true if the row points to a start that does not exist.
   */
  | { readonly kind: "unreadable"; readonly reason: string; readonly isStart: boolean };

/** A log that is read in pages or at once. A log with a gap cannot be judged. */
export class Story {
  readonly #created: Created | undefined;
  readonly #start: Pick<StandingRow, "history_from" | "responses_from">;
  readonly #events: FoldedEvent[] = [];
  readonly #responses: LoggedResponse[] = [];
  #isWhole = true;
  #isStart: boolean;
  #nextVersion: number;
  #nextSeq: number;

  /** `created` is the event at version 0. */
  constructor(row: StandingRow, created: StandingEvent | undefined) {
    const first = created && undamaged(() => foldedOf(created));
    this.#created =
      first?.event.kind === "created" && isCreation(first.event) ? first.event : undefined;
    this.#start = row;
    // The event of a later start has not been read yet.
    this.#isStart = row.history_from === 0 && row.responses_from === 0;
    this.#nextVersion = row.history_from > 0 ? row.history_from : 1;
    this.#nextSeq = row.responses_from + 1;
    if (first !== undefined) this.#events.push(first);
  }

  /** The next version and the next response number. */
  get next(): { readonly version: number; readonly seq: number } {
    return { version: this.#nextVersion, seq: this.#nextSeq };
  }

  add(events: readonly StandingEvent[], responses: readonly StandingResponse[]): void {
    for (const row of events) this.#addEvent(row);
    for (const row of responses) {
      this.#isWhole &&= row.seq === this.#nextSeq;
      this.#nextSeq = row.seq + 1;
      this.#responses.push(loggedOf(row));
    }
  }

  /** Adds a signal that an earlier run left unread, which the run may have waited for. */
  addLeft(row: StandingResponse | undefined): void {
    if (row !== undefined) this.#responses.unshift(loggedOf(row));
  }

  /**
   * The number of responses that it has seen while waiting, if earlier runs' responses count too.
   */
  get seenBeforeStart(): number | undefined {
    const { history_from: start, responses_from: responsesFrom } = this.#start;
    const waiting = this.#events.findLast(({ event }) => event.kind === "waiting")?.event;
    return start > 0 && waiting?.kind === "waiting" && waiting.seen < responsesFrom
      ? waiting.seen
      : undefined;
  }

  /** Judges the row, taken from the snapshot in which the end of the log was read. */
  judged(row: StandingRow): Judgement {
    if (!this.#isStart) return { kind: "unreadable", reason: wrongStart, isStart: true };
    const isWhole =
      this.#isWhole &&
      this.#created !== undefined &&
      this.#nextVersion === row.version + 1 &&
      this.#nextSeq === row.responses + 1;
    if (!isWhole || this.#created === undefined)
      return { kind: "unreadable", reason: notWhole, isStart: false };
    const log = { created: this.#created, events: this.#events, responses: this.#responses };
    const contradiction = undamaged(() => contradictionOf(standingOf(row), log));
    return contradiction === undefined
      ? { kind: "agrees" }
      : { kind: "contradicts", contradiction };
  }

  #addEvent(row: StandingEvent): void {
    this.#isWhole &&= row.version === this.#nextVersion;
    this.#nextVersion = row.version + 1;
    const { history_from: start, responses_from: responsesFrom } = this.#start;
    if (row.version === start)
      this.#isStart = row.kind === "continued" && row.responses === responsesFrom;
    else if (row.kind === "continued") this.#isStart = false;
    if (!standingKinds.includes(row.kind)) {
      this.#isWhole &&= isHistoryKind(row.kind) || isControlKind(row.kind);
      return;
    }
    const folded = undamaged(() => foldedOf(row));
    if (folded === undefined || isFaulty(row)) this.#isWhole = false;
    else this.#events.push(folded);
  }
}

function foldedOf(row: StandingEvent): FoldedEvent {
  return { ...eventOf({ ...row, payload: null }), responses: row.responses };
}

/** True if the fields that decide a state are those of a creation. */
function isCreation({ isPaused, scheduledAt, deadlineAt }: Created): boolean {
  return (
    typeof isPaused === "boolean" &&
    Number.isSafeInteger(scheduledAt) &&
    (deadlineAt === null || Number.isSafeInteger(deadlineAt))
  );
}

/** True for an event that no operation writes. Folding it would give a state of any kind. */
function isFaulty(row: StandingEvent): boolean {
  // It is written by `fork` alone, so its fields are not described.
  if (row.kind === "forked") return false;
  // The value was not read. Any text stands for it.
  const payload = payloadField(row.kind) === undefined ? null : ("" as Encoded);
  return eventFault(eventOf({ ...row, payload }).event) !== undefined;
}

function loggedOf(row: StandingResponse): LoggedResponse {
  return responseOf({ ...row, payload: null });
}

function standingOf(row: StandingRow): Standing {
  return {
    state: row.state,
    lifecycle: row.lifecycle,
    due: row.due_at,
    wakeAt: row.wake_at,
    seen: row.seen,
    inbox: row.inbox,
    ordinal: row.ordinal,
    isClosing: row.is_closing,
    finishedAt: row.finished_at,
    resultKind: row.result_kind,
    deadline: row.deadline_at,
    leaseUntil: row.lease_until,
  };
}

/** The contradiction in a sentence, for people. */
export function reasonOf({ fields, pending, lifecycle }: Contradiction, row: StandingRow): string {
  const parts: string[] = [];
  if (fields.includes("state"))
    parts.push(`it is ${row.state}, and ${pending.kind} as its log says`);
  if (fields.includes("lifecycle"))
    parts.push(`its lifecycle is ${row.lifecycle}, and ${lifecycle} as its log says`);
  const others = fields.filter((field) => field !== "state" && field !== "lifecycle");
  // Other differences follow from a different state.
  if (others.length > 0 && !fields.includes("state"))
    parts.push(`its ${others.map((field) => spoken[field]).join(", ")} differs from its log`);
  else if (others.includes("deadline")) parts.push(`its ${spoken.deadline} differs from its log`);
  return `Its row contradicts its log: ${parts.join("; ")}.`;
}

const spoken: Readonly<Record<keyof Standing, string>> = {
  state: "state",
  lifecycle: "lifecycle",
  due: "due_at",
  wakeAt: "wake_at",
  seen: "seen",
  inbox: "inbox",
  ordinal: "ordinal",
  isClosing: "is_closing",
  finishedAt: "finished_at",
  resultKind: "result_kind",
  deadline: "deadline_at",
  leaseUntil: "lease_until",
};
