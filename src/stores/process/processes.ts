import { optionsOf } from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import type { StoreEnvironment } from "../execution/context.ts";
import { givenDatabase } from "../given.ts";
import { processCommands } from "./commands.ts";
import type { ProcessCommands } from "./commands.ts";
import { processSurroundings } from "./context.ts";
import { processFeed } from "./feed.ts";
import type { ProcessFeed } from "./feed.ts";
import { processHandles } from "./handles.ts";
import type { ProcessHandles } from "./handles.ts";
import { processLeases } from "./leasing.ts";
import type { ProcessLeases } from "./leasing.ts";
import { processNotes } from "./noting.ts";
import type { ProcessNotes } from "./noting.ts";
import { processPruning } from "./pruning.ts";
import type { ProcessPruning } from "./pruning.ts";
import { processReads } from "./reading.ts";
import type { ProcessReads } from "./reading.ts";
import { processSpawning } from "./spawning.ts";
import type { ProcessSpawning } from "./spawning.ts";
import { processWaits } from "./waiting.ts";
import type { ProcessWaits } from "./waiting.ts";

/** The background work of a database. */
export interface Processes
  extends
    ProcessCommands,
    ProcessNotes,
    ProcessHandles,
    ProcessReads,
    ProcessWaits,
    ProcessLeases,
    ProcessFeed,
    ProcessPruning,
    ProcessSpawning {}

/**
 * The process registry: what runs beside the turns of sessions, what happened
 * to it, and who is woken by it. Holds nothing, so there may be any number of
 * these over one database.
 */
export function processes(
  database: Database,
  environment?: StoreEnvironment,
): Processes {
  const around = processSurroundings(
    givenDatabase(database),
    optionsOf(environment),
  );
  return {
    ...processCommands(around),
    ...processNotes(around),
    ...processHandles(around),
    ...processReads(around),
    ...processWaits(around),
    ...processLeases(around),
    ...processFeed(around),
    ...processPruning(around),
    ...processSpawning(around),
  };
}
