import { blobGraceDefault } from "../../model/blob.ts";
import { durationMs, type Duration } from "../../model/time/durations.ts";
import type { PayloadCodec } from "../../model/values/payload-codec.ts";
import { checkedCount, givenFunction } from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import { storeContext, type StoreContext, type StoreOptions } from "../context.ts";
import type { CollectReport } from "./collect.ts";

/** Options of maintenance. `payload` is the codec of the stores: `check` reads values with it. */
export interface MaintenanceOptions extends StoreOptions {
  /** The number of commits after which garbage is collected; defaults to 0, never. */
  readonly collectEvery?: number;
  /** The grace period of collections without their own; defaults to 1 hour. */
  readonly grace?: Duration;
  /**
   * The source memory of collections without their own; defaults to 30 days. Pass the value that
   * `queue` gets.
   */
  readonly sourceKeyMemory?: Duration;
  /**
   * Called with the outcome of every collection that `afterCommit` started, since no caller awaits
   * those after turn commits.
   */
  readonly onCollected?: (outcome: CollectReport | { readonly error: unknown }) => void;
}

export interface MaintenanceContext extends StoreContext {
  readonly payload: PayloadCodec | undefined;
  readonly collectEvery: number;
  readonly grace: Duration;
  /** Undefined for the default of queues. */
  readonly sourceKeyMemory: Duration | undefined;
  readonly onCollected: MaintenanceOptions["onCollected"];
}

export function maintenanceContext(
  database: Database,
  options: MaintenanceOptions | undefined,
): MaintenanceContext {
  const context = storeContext(database, options, [
    "collectEvery",
    "grace",
    "sourceKeyMemory",
    "onCollected",
  ]);
  const {
    payload,
    collectEvery = 0,
    grace = blobGraceDefault,
    sourceKeyMemory,
    onCollected,
  } = options ?? {};
  givenFunction("onCollected", onCollected);
  durationMs(grace, "grace");
  if (sourceKeyMemory !== undefined) durationMs(sourceKeyMemory, "sourceKeyMemory");
  return {
    ...context,
    payload,
    collectEvery: checkedCount("collectEvery", collectEvery),
    grace,
    sourceKeyMemory,
    onCollected,
  };
}
