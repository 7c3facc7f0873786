import type { Encoded } from "../../model/encoded.ts";
import { isHoldfastError } from "../../model/errors.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { isOutput, outputOfResult } from "../../model/process-output.ts";
import type { ProcessEnd, ProcessOutput } from "../../model/process-output.ts";
import type { ProcessRecord, ProcessWake } from "../../model/process.ts";
import { isResult } from "../../model/result.ts";
import type { ProcessCodec } from "./context.ts";
import type { StoredProcessEvent } from "./event-row.ts";
import type { StoredEnd } from "./read.ts";

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

type Decode = Pick<ProcessCodec, "decode">;

/** @throws HoldfastError `CORRUPT_ROW`, `PAYLOAD_CODEC_FAILED` */
export function recordView(
  codec: Decode,
  record: ProcessRecord<Encoded>,
): ProcessView {
  const read = (stored: Encoded | null): unknown =>
    stored === null
      ? null
      : valueOf(codec, "holdfast_process", record.id, stored);
  return {
    ...record,
    input: read(record.input),
    externalRef: read(record.externalRef),
  };
}

/** @throws HoldfastError `CORRUPT_ROW`, `PAYLOAD_CODEC_FAILED` */
export function eventView(
  codec: Decode,
  event: StoredProcessEvent,
): ProcessEventView {
  const { process, sequence, at, type, replayKey, ordinal, end, wake } = event;
  return {
    process,
    sequence,
    at,
    type,
    payload:
      event.payload === null
        ? undefined
        : valueOf(codec, "holdfast_process_event", keyOf(event), event.payload),
    replayKey,
    ordinal,
    end,
    wake,
    executionVersion: event.executionVersion,
  };
}

export function keyOf({
  process,
  sequence,
}: Pick<StoredProcessEvent, "process" | "sequence">): string {
  return `${process}:${sequence}`;
}

/** What a process ended with. @throws HoldfastError `CORRUPT_ROW`, `PAYLOAD_CODEC_FAILED` */
export function outputView(
  codec: Decode,
  { event, result }: StoredEnd,
): ProcessOutput {
  const table = "holdfast_process_event";
  const stored = event.output ?? result;
  const value =
    stored === null ? undefined : valueOf(codec, table, keyOf(event), stored);
  const output =
    event.output === null && isResult(value) ? outputOfResult(value) : value;
  if (isOutput(output)) return output;
  throw corruptRow(table, keyOf(event), "ended a process without output");
}

function valueOf(
  codec: Decode,
  table: string,
  key: string,
  stored: Encoded,
): unknown {
  try {
    return codec.decode(stored);
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "VALUE_MALFORMED")
      throw error;
    throw corruptRow(table, key, "holds a value that cannot be read");
  }
}
