import type { Now } from "../../model/clock.ts";
import type { Encoded } from "../../model/encoded.ts";
import type { LeaseFence } from "../../model/lease.ts";
import { coreTypes } from "../../model/process-event-type.ts";
import type { ProcessId } from "../../model/process-id.ts";
import type { ProcessStatus, ProcessWake } from "../../model/process.ts";
import { plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { appendDeclared } from "./append-declared.ts";
import { appendCancelRequest } from "./cancel.ts";
import type { ProcessCodec } from "./context.ts";
import type { StoredProcessEvent } from "./event-row.ts";
import { lockedProcess } from "./process-row.ts";
import type { SessionScopeRef } from "./scope.ts";

/** What a woken session finds in its queue. Its source says which event it was. */
export interface WakePayload {
  readonly process: string;
  readonly type: string;
  readonly input: string;
  readonly replayKey: string | null;
  readonly causedBy: string | null;
  readonly frame: string | null;
}

/** A payload as it was when it was given: its caller may change what it gave. */
export interface ProcessEventPayload {
  readonly encoded: Encoded;
  /** Covers the type too. */
  readonly hash: string;
}

/** An event to be appended; `appending` of `processes` makes one of what a caller says. */
export interface AppendProcessEvent {
  readonly process: ProcessId;
  readonly type: string;
  readonly payload: ProcessEventPayload;
  /** Appending twice under one key is appending once. */
  readonly replayKey: string | null;
  /** Given by a worker: refused unless it holds the lease of the process. */
  readonly fence?: LeaseFence | undefined;
  /** Who is woken, if the event wakes; the wake target of the process unless told. */
  readonly wakeTarget?: SessionScopeRef | undefined;
  readonly now: Now;
  /** For values that are read and made inside the transaction. */
  readonly codec: ProcessCodec;
}

/** A wake with what the session is told. */
export interface MaterialisedWake extends ProcessWake {
  readonly input: string;
}

export interface AppendedProcessEvent {
  readonly event: StoredProcessEvent;
  readonly wake: MaterialisedWake | null;
  /** True when the event was there already. */
  readonly isReplay: boolean;
  /** The status of the process afterwards. */
  readonly status: ProcessStatus;
}

/** @throws HoldfastError `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE` */
export function eventPayload(
  { encode, hash }: Pick<ProcessCodec, "encode" | "hash">,
  type: string,
  value: unknown,
): ProcessEventPayload {
  return {
    encoded: encode(value),
    hash: hash("process-event", 1, [type, value]),
  };
}

/**
 * Appends an event of a declared type. What the type says happens with it, in
 * the same transaction: the process ends, and its session is woken. A cancel
 * request reaches the execution that the process runs as.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`,
 *   `REPLAY_KEY_CONFLICT`, `REPLAY_KEY_RESERVED`, `PROCESS_LEASE_LOST`, `EVENT_TYPE_UNDECLARED`,
 *   `EVENT_TYPE_RESERVED`, `REPLAY_KEY_REQUIRED`, `EVENT_PAYLOAD_INVALID`,
 *   `EVENT_SELECTOR_UNMATCHED`, `PROCESS_TERMINAL`, `PROCESS_LEASED`
 */
export const appendProcessEvent: Operation<
  AppendProcessEvent,
  AppendedProcessEvent
> = plainOperation("appendProcessEvent", {
  snapshotSafe: true,
  key: (input: AppendProcessEvent) => input.process,
  *one(input) {
    if (input.type === coreTypes.cancelRequested)
      return yield* appendCancelRequest(input);
    const root = yield* lockedProcess(input.process);
    return yield* appendDeclared(root, input);
  },
});
