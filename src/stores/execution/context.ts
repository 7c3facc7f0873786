import { executionCodec, type ExecutionCodec } from "../../model/execution/codec.ts";
import type { ControlEvent } from "../../model/execution/event.ts";
import type { FunctionName } from "../../model/ids/function-name.ts";
import type { StoredError } from "../../model/values/stored-error.ts";
import type { Database } from "../../sql/database.ts";
import { storeCodec, storeContext, type StoreContext, type StoreOptions } from "../context.ts";

export type Finished = Extract<ControlEvent, { readonly kind: "finished" }>;

/** The results that the store itself may have to give, in their stored form. */
export interface Endings {
  readonly timedOut: Finished;
  readonly cancelled: Finished;
  readonly ownerDied: Finished;
}

export interface ExecutionContext extends StoreContext {
  /** The codec of values in events and responses. */
  readonly values: ExecutionCodec;
  readonly endings: Endings;
  /** A number below 1. */
  readonly random: () => number;
  /**
   * For each function, the concurrency key that `lockPending` has reached. It is only a position to
   * resume from: without it some keys would wait longer.
   */
  readonly walks: Map<FunctionName, string>;
}

/** The error of an execution whose process died and that has no retries left. */
export const ownerDied: StoredError = {
  name: "OwnerDied",
  message: "The process that ran it died, and no retries were left.",
  code: "OWNER_DIED",
};

/**
 * The instant at which a body that has locked its execution judges leases and due times, and which
 * it records. Time may have passed since the call. A clock that was set back must not revive an
 * expired lease.
 */
export function judgedAt({ clock }: Pick<ExecutionContext, "clock">, askedAt: number): number {
  return Math.max(askedAt, clock.now());
}

export function executionContext(database: Database, options?: StoreOptions): ExecutionContext {
  const context = storeContext(database, options);
  const { entropy, codec } = context;
  const { payload } = options ?? {};
  // Also for the store's own results: they are not user values, so no limit applies to them.
  const unlimited = executionCodec(
    storeCodec(database, {
      ...(payload && { payload }),
      valueLimits: { charactersMax: Number.MAX_SAFE_INTEGER },
    }),
  );
  return {
    ...context,
    values: executionCodec(codec),
    endings: {
      timedOut: unlimited.finished({ kind: "timedOut" }),
      cancelled: unlimited.finished({ kind: "cancelled" }),
      // Encoded on first use: a context is also created without the codec.
      get ownerDied() {
        return unlimited.finished({
          kind: "failed",
          error: ownerDied,
        });
      },
    },
    random: () => new DataView(entropy.bytes(4).buffer).getUint32(0) / 2 ** 32,
    walks: new Map(),
  };
}
