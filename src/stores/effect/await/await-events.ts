import { optionsOf } from "../../../model/shape.ts";
import type { Database } from "../../../sql/database.ts";
import type { StoreEnvironment } from "../../execution/context.ts";
import { givenDatabase } from "../../given.ts";
import { awaitAnswers } from "./answering.ts";
import type { AwaitAnswers } from "./answering.ts";
import { awaiting } from "./awaiting.ts";
import type { Awaiting } from "./awaiting.ts";
import { awaitSurroundings } from "./context.ts";
import { awaitOverview } from "./overview.ts";
import type { AwaitOverview } from "./overview.ts";

/** What somebody inside waits for and somebody outside answers, across crashes of either. */
export interface AwaitEvents extends Awaiting, AwaitAnswers, AwaitOverview {}

/**
 * Durable await-events: opened in a scope under a key, answered from outside
 * by token, awaited by whoever runs the scope, again after a crash. Holds
 * nothing, so there may be any number of these over one database.
 */
export function awaitEvents(
  database: Database,
  environment?: StoreEnvironment,
): AwaitEvents {
  const around = awaitSurroundings(
    givenDatabase(database),
    optionsOf(environment),
  );
  return {
    ...awaiting(around),
    ...awaitAnswers(around),
    ...awaitOverview(around),
  };
}
