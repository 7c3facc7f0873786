import type { Database } from "../../sql/database.ts";
import { givenDatabase } from "../given.ts";
import { executionCommands } from "./commands.ts";
import type { ExecutionCommands } from "./commands.ts";
import { executionControls } from "./controls.ts";
import type { ExecutionControls } from "./controls.ts";
import { surroundings } from "./environment.ts";
import type { StoreEnvironment } from "./environment.ts";
import { executionTimers } from "./expiring.ts";
import type { ExecutionTimers } from "./expiring.ts";
import { executionLocks } from "./locking.ts";
import type { ExecutionLocks } from "./locking.ts";
import { executionNotes } from "./noting.ts";
import type { ExecutionNotes } from "./noting.ts";
import { executionReads } from "./reading.ts";
import type { ExecutionReads } from "./reading.ts";
import { executionRetention } from "./retaining.ts";
import type { ExecutionRetention } from "./retaining.ts";
import { executionWaits } from "./waiting.ts";
import type { ExecutionWaits } from "./waiting.ts";

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
  environment: StoreEnvironment = {},
): Executions {
  const around = surroundings(givenDatabase(database), environment);
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
