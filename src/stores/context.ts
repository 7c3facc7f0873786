import type { Clock } from "../model/time/clock.ts";
import type { Entropy } from "../model/entropy.ts";
import type { CheckedText, Encoded } from "../model/values/encoded.ts";
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
import { payloadSeal, type PayloadSeal } from "./payload-seal.ts";

/** Options of all stores. Each defaults to the database's own. */
export interface StoreOptions {
  readonly clock?: Clock;
  readonly entropy?: Entropy;
  /** Encodes values on their way to the database and decodes them on the way back: encryption. */
  readonly payload?: PayloadCodec;
  /** The size limit of a value; defaults to 2 MiB of text. */
  readonly valueLimits?: ValueLimits;
}

const storeOptionNames = [
  "clock",
  "entropy",
  "payload",
  "valueLimits",
] as const satisfies readonly (keyof StoreOptions)[];

/**
 * The context that every operation of a store gets besides its input. Stores that need more extend
 * it; an operation asks only for the parts that it uses.
 */
export interface StoreContext {
  readonly database: Database;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly ids: IdSource;
  readonly codec: ValueCodec;
  /** Tells whether values of this database go through that codec. */
  readonly seal: PayloadSeal;
  readonly encode: (value: unknown) => Encoded;
  readonly decode: (stored: Encoded) => unknown;
  /** For values that nothing else compares: the hash covers the text as it is stored. */
  readonly encodeChecked: (value: unknown) => CheckedText;
}

/**
 * The context of a store. `others` names the store's own options.
 *
 * @throws HoldfastError `OPTION_INVALID` for an invalid database, and for unknown or invalid
 *   options.
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
    seal: payloadSeal(database, given.payload),
    encode: (value) => codec.encode(value) as Encoded,
    decode: (stored) => codec.decode(stored),
    encodeChecked: (value) => withChecksum(database, codec.encode(value) as Encoded),
  };
}

/**
 * Rejects an invalid codec, which would otherwise leave values in plain text unnoticed.
 * @throws HoldfastError `OPTION_INVALID`
 */
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

/**
 * Adds a checksum to a text of a codec. The checksum is made of the stored column only. It reveals
 * nothing about an encrypted value that the column does not, and comparing it needs no key.
 */
export function withChecksum({ bytes }: Pick<Database, "bytes">, text: Encoded): CheckedText {
  return { text, checksum: bytes.checksum(text) };
}

/** False for a text that was changed after its checksum was made. */
export function isUnchanged(
  { bytes }: Pick<Database, "bytes">,
  { text, checksum }: CheckedText,
): boolean {
  return bytes.checksum(text) === checksum;
}

/** The codec by which a store writes and hashes values. */
export function storeCodec(
  database: Database,
  { payload, valueLimits }: Pick<StoreOptions, "payload" | "valueLimits">,
): ValueCodec {
  const seal = payloadSeal(database, payload);
  return valueCodec({
    sha256Hex: database.sha256Hex,
    assertOpen: (kind) => seal.assertOpen(kind),
    ...(payload && { payload }),
    ...(valueLimits && { limits: valueLimits }),
  });
}
