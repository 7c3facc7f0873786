import type { Clock } from "../../model/clock.ts";
import type { Encoded } from "../../model/encoded.ts";
import type { Entropy } from "../../model/entropy.ts";
import type { HashValue } from "../../model/session-turn.ts";
import { valueCodec } from "../../model/value-codec.ts";
import type { Database } from "../../sql/database.ts";
import { surroundings } from "../execution/context.ts";
import type { StoreEnvironment, Surroundings } from "../execution/context.ts";

/** How values of processes become what columns hold, and back. */
export interface ProcessCodec {
  readonly encode: (value: unknown) => Encoded;
  readonly decode: (stored: Encoded) => unknown;
  readonly hash: HashValue;
}

/** A database with the surroundings that processes work in. */
export interface ProcessSurroundings {
  readonly database: Database;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly codec: ProcessCodec;
  /** For the executions that processes run as. */
  readonly executions: Surroundings;
}

/**
 * For composing operations of one's own: the same surroundings give the same
 * texts and hashes as the methods of `processes` do.
 */
export function processCodec(
  database: Pick<Database, "sha256Hex">,
  environment: Pick<StoreEnvironment, "payload" | "valueLimits"> = {},
): ProcessCodec {
  const { payload, valueLimits } = environment;
  const codec = valueCodec({
    sha256Hex: database.sha256Hex,
    ...(payload && { payload }),
    ...(valueLimits && { limits: valueLimits }),
  });
  return {
    encode: (value) => codec.encode(value) as Encoded,
    decode: (stored) => codec.decode(stored),
    hash: (domain, version, value) => codec.hash(domain, version, value),
  };
}

export function processSurroundings(
  database: Database,
  given: StoreEnvironment,
): ProcessSurroundings {
  return {
    database,
    clock: given.clock ?? database.clock,
    entropy: given.entropy ?? database.entropy,
    codec: processCodec(database, given),
    executions: surroundings(database, given),
  };
}
