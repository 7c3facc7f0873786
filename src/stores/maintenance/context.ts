import { blobGraceDefault } from "../../model/blob.ts";
import { durationMs, type Duration } from "../../model/time/durations.ts";
import type { PayloadCodec } from "../../model/values/payload-codec.ts";
import { checkedCount, givenFunction } from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import { storeContext, type StoreContext, type StoreOptions } from "../context.ts";
import type { CollectReport } from "./collect.ts";

/** `payload` is the one that the stores were given: `check` reads values with it. */
export interface MaintenanceOptions extends StoreOptions {
  /** Collect garbage after so many commits; defaults to 0, which is never. */
  readonly collectEvery?: number;
  /** For collections that say nothing else; defaults to 1 hour. */
  readonly grace?: Duration;
  /** The same; defaults to 30 days. Give it what `queue` is given. */
  readonly sourceKeyMemory?: Duration;
  /** Called with the outcome of every collection that `afterCommit` began, since nobody waits for those after turn commits. */
  readonly onCollected?: (outcome: CollectReport | { readonly error: unknown }) => void;
}

export interface MaintenanceContext extends StoreContext {
  readonly payload: PayloadCodec | undefined;
  readonly collectEvery: number;
  readonly grace: Duration;
  /** Undefined for what queues remember by default. */
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
