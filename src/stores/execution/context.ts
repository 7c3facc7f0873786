import type { Clock } from "../../model/clock.ts";
import type { Entropy } from "../../model/entropy.ts";
import { executionCodec as codecOf } from "../../model/execution-codec.ts";
import type { ExecutionCodec } from "../../model/execution-codec.ts";
import { idSource } from "../../model/id-source.ts";
import type { IdSource } from "../../model/id-source.ts";
import type { PayloadCodec } from "../../model/payload-codec.ts";
import { valueCodec } from "../../model/value-codec.ts";
import type { ValueLimits } from "../../model/value-limits.ts";
import type { Database } from "../../sql/database.ts";
import type { Endings } from "./timers/expire.ts";

/** What a store takes from its surroundings; the real things unless told. */
export interface StoreEnvironment {
  readonly clock?: Clock;
  readonly entropy?: Entropy;
  /** Changes values on their way to the database and back: encryption. */
  readonly payload?: PayloadCodec;
  /** How large a value may be: 2 MiB of text unless told. */
  readonly valueLimits?: ValueLimits;
}

/** A database with the surroundings its store works in. */
export interface Surroundings {
  readonly database: Database;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly ids: IdSource;
  readonly codec: ExecutionCodec;
  /** The hash that a value was stored with, also of one that is larger than may be stored today. */
  readonly hashOf: (value: unknown) => string;
  readonly endings: Endings;
  /** A number below 1. */
  readonly random: () => number;
}

/**
 * How values become what operations take, and back: for composing operations
 * of one's own. The same surroundings give the same texts and hashes as the
 * methods of `executions` do.
 */
export function executionCodec(
  database: Pick<Database, "sha256Hex">,
  environment: Pick<StoreEnvironment, "payload" | "valueLimits"> = {},
): ExecutionCodec {
  const { payload, valueLimits } = environment;
  return codecOf(
    valueCodec({
      sha256Hex: database.sha256Hex,
      ...(payload && { payload }),
      ...(valueLimits && { limits: valueLimits }),
    }),
  );
}

export function surroundings(
  database: Database,
  given: StoreEnvironment,
): Surroundings {
  const clock = given.clock ?? database.clock;
  const entropy = given.entropy ?? database.entropy;
  const codec = executionCodec(database, given);
  // The store's own results are no user's values: no limit is meant for them.
  const own = executionCodec(
    database,
    given.payload === undefined ? {} : { payload: given.payload },
  );
  const hashing = executionCodec(database, {
    ...given,
    valueLimits: { charactersMax: Number.MAX_SAFE_INTEGER },
  });
  return {
    database,
    clock,
    entropy,
    codec,
    hashOf: (value) => hashing.hash(value),
    ids: idSource({ clock, entropy }),
    endings: {
      timedOut: own.finished({ kind: "timedOut" }),
      cancelled: own.finished({ kind: "cancelled" }),
      ownerDied: own.finished({
        kind: "failed",
        error: {
          name: "OwnerDied",
          message: "The process that ran it died, and no retries were left.",
          code: "OWNER_DIED",
        },
      }),
    },
    random: () => new DataView(entropy.bytes(4).buffer).getUint32(0) / 2 ** 32,
  };
}
