import type { Clock } from "../model/clock.ts";
import type { Entropy } from "../model/entropy.ts";
import type { Encoded } from "../model/encoded.ts";
import { idSource } from "../model/id-source.ts";
import type { IdSource } from "../model/id-source.ts";
import type { PayloadCodec } from "../model/payload-codec.ts";
import { optionsOf } from "../model/shape.ts";
import { valueCodec } from "../model/value-codec.ts";
import type { ValueCodec } from "../model/value-codec.ts";
import type { ValueLimits } from "../model/value-limits.ts";
import type { Database } from "../sql/database.ts";
import { givenDatabase } from "./given.ts";

/** What a store may be told; by default it takes the database's own things. */
export interface StoreOptions {
  readonly clock?: Clock;
  readonly entropy?: Entropy;
  /** Changes values on their way to the database and back: encryption. */
  readonly payload?: PayloadCodec;
  /** How large a value may be; defaults to 2 MiB of text. */
  readonly valueLimits?: ValueLimits;
}

const storeOptionNames = [
  "clock",
  "entropy",
  "payload",
  "valueLimits",
] as const satisfies readonly (keyof StoreOptions)[];

/**
 * What every operation of ours is given besides its input. Stores that need
 * more extend it; an operation asks for as little of it as it uses.
 */
export interface StoreContext {
  readonly database: Database;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly ids: IdSource;
  readonly codec: ValueCodec;
  readonly encode: (value: unknown) => Encoded;
  readonly decode: (stored: Encoded) => unknown;
}

/**
 * The context of a store. `others` names the options that the store has
 * besides those of all stores.
 *
 * @throws HoldfastError `OPTION_INVALID` for a database that is none, and for options that do not exist.
 */
export function storeContext<O extends StoreOptions>(
  database: Database,
  options: O | undefined,
  others: readonly (keyof O & string)[] = [],
): StoreContext {
  givenDatabase(database);
  const given = optionsOf<StoreOptions>(options, [
    ...storeOptionNames,
    ...(others as readonly (keyof StoreOptions)[]),
  ]);
  const { clock = database.clock, entropy = database.entropy } = given;
  const codec = storeCodec(database, given);
  return {
    database,
    clock,
    entropy,
    ids: idSource({ clock, entropy }),
    codec,
    encode: (value) => codec.encode(value) as Encoded,
    decode: (stored) => codec.decode(stored),
  };
}

/** How a store writes and hashes values. */
export function storeCodec(
  database: Pick<Database, "sha256Hex">,
  { payload, valueLimits }: Pick<StoreOptions, "payload" | "valueLimits">,
): ValueCodec {
  return valueCodec({
    sha256Hex: database.sha256Hex,
    ...(payload && { payload }),
    ...(valueLimits && { limits: valueLimits }),
  });
}
