import { corruptRow } from "../../model/corrupt-row.ts";
import type { HashedText } from "../../model/values/encoded.ts";
import { coreTypes } from "../../model/process/event-type.ts";
import {
  isOutput,
  outputOfResult,
  type ProcessEnd,
  type ProcessOutput,
} from "../../model/process/output.ts";
import type { ProcessRecord, ProcessStatus, ProcessWake } from "../../model/process/process.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import type { StoreOptions } from "../context.ts";
import { changedRow, readChecked, readValue } from "../damage.ts";
import { executionContext, type ExecutionContext } from "../execution/context.ts";
import { deliveredResult } from "../execution/parts.ts";
import { isHashOfEvent, type StoredEnd, type StoredProcessEvent } from "./event-row.ts";

/**
 * The context that operations on processes need. Processes may run as executions, so it is a
 * context for those too.
 */
export type ProcessContext = ExecutionContext;

/** @throws HoldfastError `OPTION_INVALID` */
export function processContext(
  database: Database,
  options: StoreOptions | undefined,
): ProcessContext {
  return executionContext(database, options);
}

/** A process as callers see it. */
export type ProcessView = ProcessRecord<unknown>;

/** An event as callers see it. */
export interface ProcessEventView {
  readonly process: string;
  readonly sequence: number;
  readonly at: number;
  readonly type: string;
  /** Undefined for events of the registry without a payload. */
  readonly payload: unknown;
  readonly replayKey: string | null;
  /** The ordinal among the signals of one name. */
  readonly ordinal: number | null;
  /** Set when the event ended the process. */
  readonly end: ProcessEnd | null;
  readonly wake: ProcessWake | null;
  /** The version of the result in the log of the execution that the process ran as. */
  readonly executionVersion: number | null;
}

export interface ProcessCancelOptions extends WaitOptions {
  /** An explanation for people and for the process, stored in the event. */
  readonly reason?: string;
}

export interface ProcessSignalOptions extends WaitOptions {
  /** The sender's name for this signal. Sending it twice sends it once. */
  readonly key: string;
}

/** An event that was appended, by this call or an earlier one. */
export interface AppendedProcessEvent {
  readonly event: ProcessEventView;
  /** The woken session and the batch in its queue; null for an event that wakes no session. */
  readonly wake: (ProcessWake & { readonly input: string }) | null;
  /** True when the event existed already. */
  readonly isReplay: boolean;
  /** The status of the process after the event. */
  readonly status: ProcessStatus;
}

type Values = Pick<ProcessContext, "codec" | "database" | "decode" | "values">;

const processTable = "holdfast_process";

/** @throws HoldfastError `CORRUPT_ROW`, `PAYLOAD_CODEC_FAILED` */
export function recordView(context: Values, record: ProcessRecord<HashedText>): ProcessView {
  const { id, input, externalRef, externalSequence } = record;
  const refKey = `${id}:${externalSequence}`;
  return {
    ...record,
    input:
      input === null
        ? null
        : hashedValue(context, processTable, id, input, (value, hash) =>
            context.codec.agrees("process-input", 1, value, hash),
          ),
    externalRef:
      externalRef === null
        ? null
        : hashedValue(context, eventTable, refKey, externalRef, (value, hash) =>
            isHashOfEvent(context.codec, { type: coreTypes.externalRef, hash }, value),
          ),
  };
}

/** Decodes a value and compares it with the hash beside it, as every read here does. */
function hashedValue(
  { decode }: Values,
  table: string,
  key: string,
  { text, hash }: HashedText,
  agrees: (value: unknown, hash: string) => boolean,
): unknown {
  const value = readValue(table, key, () => decode(text));
  if (agrees(value, hash)) return value;
  throw changedRow(table, key);
}

/** @throws HoldfastError `CORRUPT_ROW`, `PAYLOAD_CODEC_FAILED` */
export function eventView(context: Values, event: StoredProcessEvent): ProcessEventView {
  const { process, sequence, at, type, replayKey, ordinal, end, wake } = event;
  const { payload: text, executionVersion, hash } = event;
  return {
    process,
    sequence,
    at,
    type,
    payload:
      text === null
        ? undefined
        : hashedValue(context, eventTable, eventKey(event), { text, hash }, (value) =>
            isHashOfEvent(context.codec, event, value),
          ),
    replayKey,
    ordinal,
    end,
    wake,
    executionVersion,
  };
}

const eventTable = "holdfast_process_event";

function eventKey({ process, sequence }: StoredProcessEvent): string {
  return `${process}:${sequence}`;
}

/**
 * The output that a process ended with.
 * @throws HoldfastError `CORRUPT_ROW`, `PAYLOAD_CODEC_FAILED`
 */
export function outputView(context: Values, { event, execution }: StoredEnd): ProcessOutput {
  const key = eventKey(event);
  const { output: stored } = event;
  if (stored === null && execution !== null) {
    const { id, result } = execution;
    return outputOfResult(deliveredResult(context, id, result));
  }
  const output = stored === null ? undefined : readChecked(context, eventTable, key, stored);
  if (isOutput(output)) return output;
  throw corruptRow(eventTable, key, "ended a process without output");
}
