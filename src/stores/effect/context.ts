import type { Clock } from "../../model/clock.ts";
import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import { effectConflict, effectInvalid } from "../../model/effect-errors.ts";
import {
  envelopeDifference,
  refuseBytes,
} from "../../model/effect-envelope.ts";
import type { EffectEnvelope } from "../../model/effect-envelope.ts";
import type { Encoded } from "../../model/encoded.ts";
import type { Entropy } from "../../model/entropy.ts";
import { isHoldfastError } from "../../model/errors.ts";
import type { HoldfastError } from "../../model/errors.ts";
import { expiryAt } from "../../model/lease.ts";
import { isStoredError, restoredFailure } from "../../model/restored-error.ts";
import { storedError } from "../../model/stored-error.ts";
import { valueCodec } from "../../model/value-codec.ts";
import type { ValueCodec } from "../../model/value-codec.ts";
import { givenFlag } from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import type { StoreEnvironment } from "../execution/context.ts";
import { checkedEffect } from "./checks.ts";
import type { SettledEffect } from "./claim.ts";
import { corruptEffect, namesOf } from "./effect-row.ts";
import type { WantedEffect } from "./effect-row.ts";
import { Frontier } from "./frontier.ts";
import { isName } from "./scope.ts";
import type { EffectScope } from "./scope.ts";

/** What effects take from their surroundings; the database's unless told. */
export interface EffectEnvironment extends StoreEnvironment {
  /** How long one who runs an effect may be silent: 30 seconds unless told. It is renewed three times as often. */
  readonly ttl?: Duration;
  /** Strict replay: nothing is run, and what is not recorded is an error. */
  readonly replayOnly?: boolean;
}

/** Others are refused: whoever misspells strict replay must not run anything. */
export const environmentNames: readonly (keyof EffectEnvironment)[] = [
  "clock",
  "entropy",
  "payload",
  "valueLimits",
  "ttl",
  "replayOnly",
];

/** A database with the surroundings that effects work in. */
export interface EffectSurroundings {
  readonly database: Database;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly codec: ValueCodec;
  /** For errors, which are bounded by themselves: no limit is meant for them. */
  readonly ownCodec: ValueCodec;
  readonly ttlMs: number;
  readonly isStrict: boolean;
  readonly frontier: Frontier;
  /** A number below 1. */
  readonly random: () => number;
}

const ttlDefault: Duration = "30s";

export function effectSurroundings(
  database: Database,
  given: EffectEnvironment,
): EffectSurroundings {
  const entropy = given.entropy ?? database.entropy;
  const payload = {
    sha256Hex: database.sha256Hex,
    ...(given.payload && { payload: given.payload }),
  };
  return {
    database,
    clock: given.clock ?? database.clock,
    entropy,
    codec: valueCodec({
      ...payload,
      ...(given.valueLimits && { limits: given.valueLimits }),
    }),
    ownCodec: valueCodec(payload),
    ttlMs: durationMs(given.ttl ?? ttlDefault, "ttl"),
    isStrict: givenFlag("replayOnly", given.replayOnly) ?? false,
    frontier: new Frontier(),
    random: () => new DataView(entropy.bytes(4).buffer).getUint32(0) / 2 ** 32,
  };
}

const kindCharactersMax = 128;
const bytesTag = '"$holdfast":"bytes"';

/**
 * An effect as operations take it.
 *
 * @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`,
 *   `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`, `ID_MALFORMED`
 */
export function wantedEffect(
  { codec, clock }: Pick<EffectSurroundings, "codec" | "clock">,
  scope: EffectScope,
  key: string,
  envelope: EffectEnvelope,
  { attempt, delay }: { readonly attempt?: number; readonly delay?: Duration },
): WantedEffect {
  const ref = checkedEffect(scope, key, attempt);
  const given: unknown = envelope;
  if (typeof given !== "object" || given === null)
    throw effectInvalid("envelope", "an object with kind and input");
  const { kind, input } = given as Partial<EffectEnvelope>;
  if (!isName(kind, kindCharactersMax))
    throw effectInvalid(
      "envelope.kind",
      `a text of 1 to ${kindCharactersMax} characters that is not blank`,
    );
  const { text, stored, hash } = codec.canonical("effect", 1, { kind, input });
  if (text.includes(bytesTag)) refuseBytes({ kind, input });
  return {
    scope: ref.scope,
    replayKey: ref.replayKey,
    attempt: ref.attempt,
    kind,
    envelope: stored as Encoded,
    hash,
    dueAt:
      delay === undefined
        ? null
        : expiryAt(clock.now(), durationMs(delay, "delay")),
  };
}

/** The error for a key that was used before for something else, with the place where they differ. */
export function conflictOf(
  { codec }: Pick<EffectSurroundings, "codec">,
  wanted: WantedEffect,
  recorded: {
    readonly key: number;
    readonly hash: string;
    readonly envelope: Encoded;
  },
): HoldfastError {
  const path = envelopeDifference(
    readEnvelope({ codec }, recorded),
    codec.decode(wanted.envelope),
  );
  return effectConflict(
    namesOf(wanted),
    { recorded: recorded.hash, given: wanted.hash },
    path ?? "$",
  );
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function readEnvelope(
  { codec }: Pick<EffectSurroundings, "codec">,
  { key, envelope }: { readonly key: number; readonly envelope: Encoded },
): unknown {
  try {
    return codec.decode(envelope);
  } catch (cause) {
    throw corruptEffect(key, "has an envelope that cannot be read", { cause });
  }
}

/** The value that an effect returned. @throws HoldfastError `CORRUPT_ROW` */
export function readValue(
  { codec }: Pick<EffectSurroundings, "codec">,
  { key, value }: Pick<SettledEffect, "key" | "value">,
): unknown {
  try {
    return codec.decode(value);
  } catch (cause) {
    throw corruptEffect(key, "has a value that cannot be read", { cause });
  }
}

/** What was thrown, as it is recorded: with the details of what is ours, if they can be stored. */
export function writtenFailure(
  { ownCodec }: Pick<EffectSurroundings, "ownCodec">,
  thrown: unknown,
): Encoded {
  const stored = storedError(thrown);
  if (isHoldfastError(thrown))
    try {
      const { details } = thrown;
      return ownCodec.encode({ ...stored, details }) as Encoded;
    } catch {
      // Somebody else made it. What it is called and says is enough.
    }
  return ownCodec.encode(stored) as Encoded;
}

/** The error that an effect threw, as it was recorded. @throws HoldfastError `CORRUPT_ROW` */
export function readFailure(
  { codec }: Pick<EffectSurroundings, "codec">,
  effect: Pick<SettledEffect, "key" | "value" | "isTransient">,
): Error {
  const stored = readValue({ codec }, effect);
  if (!isStoredError(stored))
    throw corruptEffect(effect.key, "has a failure that is no error");
  const error = restoredFailure(stored);
  return effect.isTransient ? Object.assign(error, { transient: true }) : error;
}
