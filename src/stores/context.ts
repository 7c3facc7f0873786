import type { Clock } from "../model/time/clock.ts";
import type { Entropy } from "../model/entropy.ts";
import type { Encoded } from "../model/values/encoded.ts";
import { idSource } from "../model/ids/id-source.ts";
import type { IdSource } from "../model/ids/id-source.ts";
import type { PayloadCodec } from "../model/values/payload-codec.ts";
import { checkedCount, draftOf, givenInvalid, optionsOf, readGiven } from "../model/shape.ts";
import { isRecord } from "../model/values/spoken-kind.ts";
import { valueCodec } from "../model/values/value-codec.ts";
import type { ValueCodec } from "../model/values/value-codec.ts";
import type { ValueLimits } from "../model/values/value-limits.ts";
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
 * @throws HoldfastError `OPTION_INVALID` for a database that is none, and for options that do not exist or are not of their kind.
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
  checkStoreOptions(given);
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

/** A codec that is none must not go unnoticed: values would be stored in plain text. @throws HoldfastError `OPTION_INVALID` */
export function checkStoreOptions(given: StoreOptions): void {
  const { clock, entropy, payload, valueLimits } = given;
  if (clock !== undefined && !(hasFunction(clock, "now") && hasFunction(clock, "wakeAt")))
    throw givenInvalid("clock", "one with now() and wakeAt()", clock);
  if (entropy !== undefined && !hasFunction(entropy, "bytes"))
    throw givenInvalid("entropy", "one with bytes()", entropy);
  const isCodec = (): boolean => payload === undefined || isPayloadCodec(payload);
  if (!readGiven("payload", isCodec))
    throw givenInvalid("payload", "a codec with name, encode(), decode() and hash", payload);
  if (valueLimits === undefined) return;
  const limits = draftOf("valueLimits", valueLimits, ["charactersMax"]);
  checkedCount("charactersMax", limits.charactersMax, { min: 1 });
}

function isPayloadCodec(given: PayloadCodec): boolean {
  return (
    hasFunction(given, "encode") &&
    hasFunction(given, "decode") &&
    typeof given.name === "string" &&
    (given.hash === "sha256" || hasFunction(given, "hash"))
  );
}

function hasFunction<T>(given: T, name: keyof T & string): boolean {
  return isRecord(given) && typeof given[name] === "function";
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
