import { optionsOf } from "../../model/shape.ts";
import type { Database, Durability } from "../../sql/database.ts";
import { givenDatabase } from "../given.ts";
import { effectClaims } from "./claiming.ts";
import type { EffectClaims } from "./claiming.ts";
import { effectSurroundings, environmentNames } from "./context.ts";
import type { EffectEnvironment } from "./context.ts";
import { effectExecution } from "./executing.ts";
import type { EffectExecution } from "./executing.ts";
import { effectReads } from "./reading.ts";
import type { EffectReads } from "./reading.ts";

/** The effects of a database. */
export interface Effects extends EffectExecution, EffectClaims, EffectReads {
  /** What an acknowledgement promises: that of the database. */
  readonly durability: Durability;
}

/**
 * Calls to the world outside whose results are recorded, so that whoever runs
 * the same again gets what was recorded and does nothing twice. Holds nothing
 * but subscriptions and guesses, so there may be any number of these over one
 * database.
 */
export function effects(
  database: Database,
  environment?: EffectEnvironment,
): Effects {
  const around = effectSurroundings(
    givenDatabase(database),
    optionsOf(environment, environmentNames),
  );
  return {
    durability: database.durability,
    ...effectExecution(around),
    ...effectClaims(around),
    ...effectReads(around),
  };
}
