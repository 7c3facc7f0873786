import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import { HoldfastError } from "../../model/errors.ts";
import { isFields } from "../../model/payload-schema.ts";
import { scheduleSource } from "../../model/trigger.ts";
import type { TriggerSource } from "../../model/trigger.ts";
import { subscriptionInvalid } from "../../model/trigger-errors.ts";
import {
  checkedFilterText,
  checkedInstant,
  givenFunction,
  givenObject,
  optionsOf,
} from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { withValues } from "../damage.ts";
import type { Sifted } from "../damage.ts";
import { cancelRequest, newEvent } from "../process/commands.ts";
import type { ProcessCancelOptions } from "../process/commands.ts";
import { keyPlace, nextCursor } from "../cursor.ts";
import { checkedLimit, pageNames } from "../paging.ts";
import type { Page, PageOptions } from "../list.ts";
import { checkedRowsPerSlice } from "../slices.ts";
import { cancelOccurrence } from "./cancel.ts";
import {
  checkedNewKey,
  checkedOccurrenceKey,
  checkedSource,
  subscriptionNamed,
} from "./checks.ts";
import type { SubscriptionName } from "./checks.ts";
import type { TriggerSurroundings } from "./context.ts";
import { occurrenceTable, readOccurrence } from "./occurrence-row.ts";
import type { TriggerDelivery, Occurrence } from "./occurrence-row.ts";
import { listOccurrences, readOneOccurrence } from "./read-occurrences.ts";
import { recordOccurrence } from "./record.ts";
import type { RecordOccurrence, RecordOccurrenceOutcome } from "./record.ts";
import { removeOccurrenceSlice } from "./retention.ts";
import { listUnstarted } from "./unstarted.ts";
import type { UnstartedDelivery } from "./unstarted.ts";
import type { OccurrencePlace, RemovedOccurrences } from "./retention.ts";

/** Something that happened. */
export interface OccurrenceDraft {
  /**
   * Chosen by the caller, and no other occurrence's: recording it twice is
   * recording it once. Those that begin with `schedule:` are the scheduler's.
   */
  readonly key: string;
  readonly source:
    TriggerSource | { readonly type: string; readonly value: unknown };
  readonly payload?: unknown;
  /** In milliseconds since 1970; now unless told. */
  readonly occurredAt?: number;
}

export interface OccurrenceView extends Occurrence<unknown> {
  readonly deliveries: readonly TriggerDelivery[];
}

export interface ListOccurrencesOptions extends PageOptions {
  readonly source?: OccurrenceDraft["source"];
  /** Those that were delivered to it. */
  readonly subscription?: SubscriptionName;
}

export interface RemoveOccurrencesOptions {
  readonly signal?: AbortSignal;
  /** Rows per transaction, occurrences with their deliveries: 500 unless told. */
  readonly rowsPerSlice?: number;
  /** Told after every slice. */
  readonly onProgress?: (soFar: OccurrenceRemovalReport) => void;
}

export interface OccurrenceRemovalReport {
  readonly removed: number;
  readonly rows: number;
  /** Left because a process that they started has not ended. */
  readonly kept: number;
}

/** What happened, and what it started. */
export interface Occurrences {
  /**
   * Records that something happened, and registers a process for each enabled
   * subscription to its source, in one transaction. Workers find them in the
   * recovery worklist of the processes.
   * @throws HoldfastError `OCCURRENCE_CONFLICT`, `NOT_SERIALIZABLE`, `NAME_INVALID`
   * @example await triggers.record({ key: "github:4711", source: { type: "webhook", key: "github" }, payload: body });
   */
  record(
    draft: OccurrenceDraft,
    wait?: WaitOptions,
  ): Promise<RecordOccurrenceOutcome<unknown>>;
  /** What `recordOccurrence` takes, for who records in a transaction of their own. */
  recording(draft: OccurrenceDraft): RecordOccurrence;
  /** @throws HoldfastError `OCCURRENCE_NOT_FOUND`, `CORRUPT_ROW` */
  occurrence(key: string, wait?: WaitOptions): Promise<OccurrenceView>;
  /**
   * A page of occurrences with their deliveries, the latest first. What cannot be read is named.
   * @throws HoldfastError `CURSOR_INVALID`, `SUBSCRIPTION_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  occurrences(options?: ListOccurrencesOptions): Promise<Page<OccurrenceView>>;
  /**
   * Asks all processes that an occurrence has started and that still run to
   * stop; answers which, and names those that cannot be read. May be repeated.
   * @throws HoldfastError `OCCURRENCE_NOT_FOUND`
   */
  cancelOccurrence(
    key: string,
    options?: ProcessCancelOptions,
  ): Promise<Sifted<string>>;
  /**
   * A page of what occurrences have registered and nobody has begun: what a
   * worker that starts up has to do first.
   */
  unstarted(options?: PageOptions): Promise<Page<UnstartedDelivery>>;
  /**
   * Removes occurrences that were recorded longer ago, with their deliveries,
   * once what they started has ended; in small transactions.
   */
  removeOccurrences(
    policy: { readonly olderThan: Duration },
    options?: RemoveOccurrencesOptions,
  ): Promise<OccurrenceRemovalReport>;
}

export function occurrences(around: TriggerSurroundings): Occurrences {
  const { database, clock, codec } = around;
  return {
    async record(draft, wait) {
      const outcome = await database.write(
        recordOccurrence,
        newOccurrence(around, draft),
        wait,
      );
      const { kind, deliveries, damaged } = outcome;
      const occurrence = readOccurrence(codec, outcome.occurrence);
      return { kind, occurrence, deliveries, damaged };
    },
    recording: (draft) => newOccurrence(around, draft),
    async occurrence(key, wait) {
      const { occurrence, deliveries } = await database.read(
        readOneOccurrence,
        checkedOccurrenceKey(key),
        wait,
      );
      return { ...readOccurrence(codec, occurrence), deliveries };
    },
    occurrences: (options) => page(around, options),
    cancelOccurrence: (key, options) => cancelled(around, key, options),
    async unstarted(options) {
      const { after = "", limit, ...wait } = optionsOf(options);
      const input = {
        after: checkedFilterText("after", after),
        limit: checkedLimit(limit),
        now: clock.now(),
      };
      return database.read(listUnstarted, input, wait);
    },
    removeOccurrences: (policy, options) => removed(around, policy, options),
  };
}

async function page(
  { database, codec }: TriggerSurroundings,
  given: ListOccurrencesOptions | undefined,
): Promise<Page<OccurrenceView>> {
  const options = optionsOf(given, [...pageNames, "source", "subscription"]);
  const { after, limit, signal, timeout } = options;
  const source =
    options.source === undefined
      ? undefined
      : checkedSource(codec, options.source);
  const subscription =
    options.subscription === undefined
      ? undefined
      : subscriptionNamed(options.subscription);
  const { registrant = null, key } = subscription ?? {};
  const owner = `occurrences:${JSON.stringify([source?.type, source?.key, registrant?.id, key])}`;
  const input = {
    source,
    subscription,
    before:
      after === undefined ? Number.MAX_SAFE_INTEGER : keyPlace(owner, after),
    limit: checkedLimit(limit),
  };
  const wait = { signal, timeout };
  const found = await database.read(listOccurrences, input, wait);
  const { items, damaged } = withValues(
    occurrenceTable,
    found,
    ({ occurrence }) => occurrence.key,
    ({ occurrence, deliveries }) => ({
      ...readOccurrence(codec, occurrence),
      deliveries,
    }),
  );
  return { items, damaged, next: nextCursor(owner, found.next) };
}

function newOccurrence(
  { clock, codec }: TriggerSurroundings,
  draft: OccurrenceDraft,
): RecordOccurrence {
  if (!isFields(draft))
    throw new HoldfastError(
      "OPTION_INVALID",
      "An occurrence is an object with a key and a source.",
      { option: "occurrence" },
    );
  const at = clock.now();
  const source = checkedSource(codec, draft.source, "occurrence");
  if (source.type === scheduleSource)
    throw subscriptionInvalid(
      "$.source.type",
      `is "${scheduleSource}": occurrences of schedules are recorded by the scheduler alone.`,
      { of: "occurrence" },
    );
  const { payload: value = null, occurredAt = at } = draft;
  return {
    key: checkedNewKey(draft.key),
    source,
    payload: {
      encoded: codec.encode(value),
      hash: codec.hash("occurrence", 1, value),
    },
    occurredAt: checkedInstant("occurredAt", occurredAt),
    at,
    codec,
  };
}

async function cancelled(
  around: TriggerSurroundings,
  key: string,
  options: ProcessCancelOptions | undefined,
): Promise<Sifted<string>> {
  const { reason, ...wait } = optionsOf(options);
  const event = cancelRequest(around, reason);
  const input = {
    key: checkedOccurrenceKey(key),
    requestTo: (process: string) => newEvent(around, process, event),
  };
  return around.database.write(cancelOccurrence, input, wait);
}

async function removed(
  { database, clock }: TriggerSurroundings,
  policy: { readonly olderThan: Duration },
  options: RemoveOccurrencesOptions | undefined,
): Promise<OccurrenceRemovalReport> {
  const known = ["signal", "rowsPerSlice", "onProgress"] as const;
  const { signal, rowsPerSlice, onProgress } = optionsOf(options, known);
  givenFunction("onProgress", onProgress);
  const { olderThan } = givenObject("policy", policy);
  const before = clock.now() - durationMs(olderThan, "olderThan");
  const rowsMax = checkedRowsPerSlice(rowsPerSlice);
  let soFar: OccurrenceRemovalReport = { removed: 0, rows: 0, kept: 0 };
  let after: OccurrencePlace | undefined = { recordedAt: -1, key: 0 };
  while (after !== undefined) {
    const slice: RemovedOccurrences = await database.write(
      removeOccurrenceSlice,
      { before, after, rowsMax },
      { signal },
    );
    soFar = {
      removed: soFar.removed + slice.removed,
      rows: soFar.rows + slice.rows,
      kept: soFar.kept + slice.kept,
    };
    onProgress?.(soFar);
    if (signal?.aborted === true && slice.next !== undefined) throw stopped();
    after = slice.next;
  }
  return soFar;
}

function stopped(): HoldfastError {
  return new HoldfastError(
    "ABORTED",
    "The removal was stopped between two slices. Call it again to go on.",
  );
}
