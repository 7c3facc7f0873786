import { optionsOf } from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import { givenDatabase } from "../given.ts";
import { queueClaims } from "./claiming.ts";
import type { QueueClaims } from "./claiming.ts";
import { queueSurroundings } from "./environment.ts";
import type { QueueEnvironment } from "./environment.ts";
import { queueContents } from "./queuing.ts";
import type { QueueContents } from "./queuing.ts";

/** The queues of all sessions of a database. */
export interface Queue extends QueueContents, QueueClaims {}

/**
 * Queued work: what waits for a session's next turn. Holds nothing but
 * subscriptions, so there may be any number of these over one database.
 */
export function queue(
  database: Database,
  environment?: QueueEnvironment,
): Queue {
  const around = queueSurroundings(
    givenDatabase(database),
    optionsOf(environment),
  );
  return { ...queueContents(around), ...queueClaims(around) };
}
