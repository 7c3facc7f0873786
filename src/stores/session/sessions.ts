import { optionsOf } from "../../model/shape.ts";
import type { Database, Durability } from "../../sql/database.ts";
import { givenDatabase } from "../given.ts";
import { sessionCommands } from "./commands.ts";
import type { SessionCommands } from "./commands.ts";
import { sessionSurroundings } from "./context.ts";
import type { SessionEnvironment } from "./context.ts";
import { sessionReads } from "./reading.ts";
import type { SessionReads } from "./reading.ts";
import { sessionRemovals } from "./removing.ts";
import type { SessionRemovals } from "./removing.ts";
import { sessionTurns } from "./turn/turns.ts";
import type { SessionTurns } from "./turn/turns.ts";

/** The conversations of a database. */
export interface Sessions
  extends SessionCommands, SessionTurns, SessionReads, SessionRemovals {
  /** What an acknowledgement promises: that of the database. */
  readonly durability: Durability;
}

/**
 * Conversations of agents: a graph of nodes, a checkpoint in parts, a ledger
 * of usage, all of it changed by turn commits. Holds nothing, so there may be
 * any number of these over one database.
 */
export function sessions(
  database: Database,
  environment?: SessionEnvironment,
): Sessions {
  const around = sessionSurroundings(
    givenDatabase(database),
    optionsOf(environment),
  );
  return {
    durability: database.durability,
    ...sessionCommands(around),
    ...sessionTurns(around),
    ...sessionReads(around),
    ...sessionRemovals(around),
  };
}
