import type { Database } from "../../sql/database.ts";
import type { StoreOptions } from "../context.ts";
import { executionCommands } from "./log/commands.ts";
import type { ExecutionCommands } from "./log/commands.ts";
import { executionControls } from "./control/controls.ts";
import type { ExecutionControls } from "./control/controls.ts";
import { executionContext, type Surroundings } from "./context.ts";
import { executionTimers } from "./timers/expiring.ts";
import type { ExecutionTimers } from "./timers/expiring.ts";
import { executionLocks } from "./lock/locking.ts";
import type { ExecutionLocks } from "./lock/locking.ts";
import { executionNotes } from "./read/noting.ts";
import type { ExecutionNotes } from "./read/noting.ts";
import { executionReads } from "./read/reading.ts";
import type { ExecutionReads } from "./read/reading.ts";
import { executionRetention } from "./retaining.ts";
import type { ExecutionRetention } from "./retaining.ts";
import { executionWaits } from "./lock/waiting.ts";
import type { ExecutionWaits } from "./lock/waiting.ts";

/** The execution log of a database. */
export interface Executions
  extends
    ExecutionCommands,
    ExecutionControls,
    ExecutionLocks,
    ExecutionTimers,
    ExecutionWaits,
    ExecutionReads,
    ExecutionNotes,
    ExecutionRetention {}

/**
 * The execution log: create, append, lock, wait, read. Holds nothing but
 * subscriptions and the place where a search for work stopped, so there may be
 * any number of these over one database.
 */
export function executions(
  database: Database,
  options?: StoreOptions,
): Executions {
  const context = executionContext(database, options);
  // For the parts below that are no table yet.
  const around: Surroundings = { ...context, codec: context.values };
  return {
    ...executionCommands(around),
    ...executionControls(around),
    ...executionLocks(around),
    ...executionTimers(around),
    ...executionWaits(around),
    ...executionReads(around),
    ...executionNotes(around),
    ...executionRetention(around),
  };
}
