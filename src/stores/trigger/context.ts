import type { Clock } from "../../model/clock.ts";
import type { Database } from "../../sql/database.ts";
import type { StoreEnvironment } from "../execution/context.ts";
import { processCodec } from "../process/context.ts";
import type { ProcessCodec } from "../process/context.ts";

/** A database with the surroundings that triggers work in. */
export interface TriggerSurroundings {
  readonly database: Database;
  readonly clock: Clock;
  readonly codec: ProcessCodec;
}

export function triggerSurroundings(
  database: Database,
  given: StoreEnvironment,
): TriggerSurroundings {
  return {
    database,
    clock: given.clock ?? database.clock,
    // The processes that are started are read with the codec of `processes`.
    codec: processCodec(database, given),
  };
}
