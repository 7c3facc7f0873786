import { executionCodec, type ExecutionCodec } from "../../model/execution/codec.ts";
import type { ControlEvent } from "../../model/execution/event.ts";
import type { FunctionName } from "../../model/ids/function-name.ts";
import type { Database } from "../../sql/database.ts";
import { storeCodec, storeContext, type StoreContext, type StoreOptions } from "../context.ts";

export type Finished = Extract<ControlEvent, { readonly kind: "finished" }>;

/** The results that the store itself may have to give, in the form in which they are stored. */
export interface Endings {
  readonly timedOut: Finished;
  readonly cancelled: Finished;
  readonly ownerDied: Finished;
}

export interface ExecutionContext extends StoreContext {
  /** How values in events and responses are written and read. */
  readonly values: ExecutionCodec;
  /** The hash that a value was stored with, also of one that is larger than may be stored today. */
  readonly hashOf: (value: unknown) => string;
  readonly endings: Endings;
  /** A number below 1. */
  readonly random: () => number;
  /**
   * For each function the concurrency key up to which `lockPending` has come.
   * Only a place to go on from: without it some keys would wait longer.
   */
  readonly walks: Map<FunctionName, string>;
}

/**
 * The instant at which a body that has locked its execution judges leases and
 * due times, and which it records: time may have passed since the call, and a
 * clock that was set back must not revive what was over.
 */
export function judgedAt({ clock }: Pick<ExecutionContext, "clock">, askedAt: number): number {
  return Math.max(askedAt, clock.now());
}

export function executionContext(database: Database, options?: StoreOptions): ExecutionContext {
  const context = storeContext(database, options);
  const { entropy, codec } = context;
  const { payload } = options ?? {};
  // Also for the store's own results, which are no user's values: no limit is meant for them.
  const unlimited = executionCodec(
    storeCodec(database, {
      ...(payload && { payload }),
      valueLimits: { charactersMax: Number.MAX_SAFE_INTEGER },
    }),
  );
  return {
    ...context,
    values: executionCodec(codec),
    hashOf: (value) => unlimited.hash(value),
    endings: {
      timedOut: unlimited.finished({ kind: "timedOut" }),
      cancelled: unlimited.finished({ kind: "cancelled" }),
      ownerDied: unlimited.finished({
        kind: "failed",
        error: {
          name: "OwnerDied",
          message: "The process that ran it died, and no retries were left.",
          code: "OWNER_DIED",
        },
      }),
    },
    random: () => new DataView(entropy.bytes(4).buffer).getUint32(0) / 2 ** 32,
    walks: new Map(),
  };
}
