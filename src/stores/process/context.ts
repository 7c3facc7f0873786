import { corruptRow } from "../../model/corrupt-row.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { isHoldfastError } from "../../model/errors.ts";
import {
  isOutput,
  outputOfResult,
  type ProcessEnd,
  type ProcessOutput,
} from "../../model/process/output.ts";
import type { ProcessRecord, ProcessStatus, ProcessWake } from "../../model/process/process.ts";
import { isResult } from "../../model/execution/result.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import type { StoreContext, StoreOptions } from "../context.ts";
import { executionContext, type ExecutionContext } from "../execution/context.ts";
import type { StoredEnd, StoredProcessEvent } from "./event-row.ts";

/** What operations on processes need besides their input. Processes may run as executions, so it is a context for those too. */
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
  /** Undefined for events of the registry that carry nothing. */
  readonly payload: unknown;
  readonly replayKey: string | null;
  /** The number among the signals of one name. */
  readonly ordinal: number | null;
  /** Set when the event ended the process. */
  readonly end: ProcessEnd | null;
  readonly wake: ProcessWake | null;
  /** Where the result is in the log of the execution that the process ran as. */
  readonly executionVersion: number | null;
}

export interface ProcessCancelOptions extends WaitOptions {
  /** For people and for the process; kept in the event. */
  readonly reason?: string;
}

export interface ProcessSignalOptions extends WaitOptions {
  /** Names this signal for its sender: sending it twice is sending it once. */
  readonly key: string;
}

/** An event that was appended, now or before. */
export interface AppendedProcessEvent {
  readonly event: ProcessEventView;
  /** Which session was woken, and what it is told; null when the event wakes nobody. */
  readonly wake: (ProcessWake & { readonly input: string }) | null;
  /** True when the event was there already. */
  readonly isReplay: boolean;
  /** The status of the process afterwards. */
  readonly status: ProcessStatus;
}

type Decode = Pick<StoreContext, "decode">;

/** @throws HoldfastError `CORRUPT_ROW`, `PAYLOAD_CODEC_FAILED` */
export function recordView(context: Decode, record: ProcessRecord<Encoded>): ProcessView {
  const read = (stored: Encoded | null): unknown =>
    stored === null ? null : valueOf(context, "holdfast_process", record.id, stored);
  return {
    ...record,
    input: read(record.input),
    externalRef: read(record.externalRef),
  };
}

/** @throws HoldfastError `CORRUPT_ROW`, `PAYLOAD_CODEC_FAILED` */
export function eventView(context: Decode, event: StoredProcessEvent): ProcessEventView {
  const { process, sequence, at, type, replayKey, ordinal, end, wake } = event;
  const { payload, executionVersion } = event;
  return {
    process,
    sequence,
    at,
    type,
    payload: payload === null ? undefined : valueOf(context, eventTable, eventKey(event), payload),
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

/** What a process ended with. @throws HoldfastError `CORRUPT_ROW`, `PAYLOAD_CODEC_FAILED` */
export function outputView(context: Decode, { event, result }: StoredEnd): ProcessOutput {
  const key = eventKey(event);
  const stored = event.output ?? result;
  const value = stored === null ? undefined : valueOf(context, eventTable, key, stored);
  const output = event.output === null && isResult(value) ? outputOfResult(value) : value;
  if (isOutput(output)) return output;
  throw corruptRow(eventTable, key, "ended a process without output");
}

function valueOf({ decode }: Decode, table: string, key: string, stored: Encoded): unknown {
  try {
    return decode(stored);
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "VALUE_MALFORMED") throw error;
    throw corruptRow(table, key, "holds a value that cannot be read");
  }
}
