import { durationMs, type Duration } from "../../model/time/durations.ts";
import { effectConflict, effectInvalid } from "../../model/effect/errors.ts";
import {
  envelopeDifference,
  refuseBytes,
  type EffectEnvelope,
} from "../../model/effect/envelope.ts";
import type { EffectOutcome } from "../../model/effect/effect.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { isSealed } from "../../model/values/payload-mark.ts";
import type { HoldfastError } from "../../model/errors.ts";
import { expiryAt } from "../../model/lease.ts";
import { isStoredError, restoredFailure } from "../../model/values/restored-error.ts";
import { draftOf, givenFlag } from "../../model/shape.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";
import { storedError } from "../../model/values/stored-error.ts";
import type { ValueCodec } from "../../model/values/value-codec.ts";
import type { Database } from "../../sql/database.ts";
import {
  isUnchanged,
  storeCodec,
  storeContext,
  withChecksum,
  type StoreContext,
  type StoreOptions,
} from "../context.ts";
import { corruptEffect, namesOf, type EffectRequest, type SettledEffect } from "./effect-row.ts";
import { Frontier } from "./frontier.ts";
import { checkedEffect, isName, type EffectScope } from "./scope.ts";

/** Options of effects; unset ones default to those of the database. */
export interface EffectOptions extends StoreOptions {
  /**
   * The longest time that a worker may run an effect without renewing its claim; defaults to 30
   * seconds. The claim is renewed three times per lease.
   */
  readonly lease?: Duration;
  /** Strict replay: nothing runs, and an unrecorded effect is an error. */
  readonly replayOnly?: boolean;
}

/** The context of operations on effects. */
export interface EffectContext extends StoreContext {
  /** For errors, which have their own bounds, so no size limit applies. */
  readonly ownCodec: ValueCodec;
  readonly leaseMs: number;
  readonly isStrict: boolean;
  readonly frontier: Frontier;
  /** A number below 1. */
  readonly random: () => number;
}

const leaseDefault: Duration = "30s";

export function effectContext(
  database: Database,
  options: EffectOptions | undefined,
): EffectContext {
  const context = storeContext(database, options, ["lease", "replayOnly"]);
  const { payload, lease = leaseDefault, replayOnly } = options ?? {};
  const { entropy } = context;
  return {
    ...context,
    ownCodec: storeCodec(database, payload === undefined ? {} : { payload }),
    leaseMs: durationMs(lease, "lease"),
    isStrict: givenFlag("replayOnly", replayOnly) ?? false,
    frontier: new Frontier(),
    random: () => new DataView(entropy.bytes(4).buffer).getUint32(0) / 2 ** 32,
  };
}

/** The duration of a claim in milliseconds. @throws HoldfastError `DURATION_INVALID` */
export function leaseMsOf(
  { leaseMs }: Pick<EffectContext, "leaseMs">,
  lease: Duration | undefined,
): number {
  return lease === undefined ? leaseMs : durationMs(lease, "lease");
}

const kindCharactersMax = 128;
const bytesTag = '"$holdfast":"bytes"';

/**
 * Validates the arguments that name an effect and encodes its envelope.
 * @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`,
 *   `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`, `ID_MALFORMED`
 */
export function effectRequest(
  { codec, clock }: Pick<EffectContext, "codec" | "clock">,
  scope: EffectScope,
  key: string,
  envelope: EffectEnvelope,
  {
    attempt,
    delay,
  }: {
    readonly attempt?: number | undefined;
    readonly delay?: Duration | undefined;
  },
): EffectRequest {
  const ref = checkedEffect(scope, key, attempt);
  const { kind, input } = checkedEnvelope(envelope);
  const { text, stored, hash, clearHash } = codec.canonical("effect", 1, { kind, input });
  if (text.includes(bytesTag)) refuseBytes({ kind, input });
  return {
    scope: ref.scope,
    replayKey: ref.replayKey,
    attempt: ref.attempt,
    kind,
    envelope: stored as Encoded,
    hash,
    clearHash,
    dueAt: delay === undefined ? null : expiryAt(clock.now(), durationMs(delay, "delay")),
  };
}

function checkedEnvelope(envelope: EffectEnvelope): EffectEnvelope {
  if (!isRecord(envelope)) throw effectInvalid("envelope", "an object with kind and input");
  const known = draftOf<EffectEnvelope>("the envelope", envelope, ["kind", "input"]);
  if (isName(known.kind, kindCharactersMax)) return known;
  throw effectInvalid(
    "envelope.kind",
    `a non-blank string of 1 to ${kindCharactersMax} characters`,
  );
}

/**
 * The error for a key that was used before with another envelope. It names the first difference.
 */
export function conflictOf(
  { codec }: Pick<EffectContext, "codec">,
  request: EffectRequest,
  recorded: {
    readonly key: number;
    readonly hash: string;
    readonly envelope: Encoded;
  },
): HoldfastError {
  const path = envelopeDifference(
    readEnvelope({ codec }, recorded),
    codec.decode(request.envelope),
  );
  return effectConflict(
    namesOf(request),
    { recorded: recorded.hash, given: request.hash },
    path ?? "$",
  );
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function readEnvelope(
  { codec }: Pick<EffectContext, "codec">,
  {
    key,
    envelope,
    hash,
  }: { readonly key: number; readonly envelope: Encoded; readonly hash: string },
): unknown {
  let read: unknown;
  try {
    read = codec.decode(envelope);
  } catch (cause) {
    if (isSealed(cause)) throw cause;
    throw corruptEffect(key, "has an envelope that cannot be read", { cause });
  }
  if (codec.agrees("effect", 1, read, hash)) return read;
  throw corruptEffect(key, "has an envelope that does not match its hash");
}

/** Decodes the value that an effect returned. @throws HoldfastError `CORRUPT_ROW` */
export function readValue(
  { codec, database }: Pick<EffectContext, "codec" | "database">,
  { key, value }: Pick<SettledEffect, "key" | "value">,
): unknown {
  if (!isUnchanged(database, value))
    throw corruptEffect(key, "has a value that does not match its hash");
  try {
    return codec.decode(value.text);
  } catch (cause) {
    if (isSealed(cause)) throw cause;
    throw corruptEffect(key, "has a value that cannot be read", { cause });
  }
}

/** Encodes a thrown error as a recorded failure. */
export function failureOf(
  { ownCodec, database }: Pick<EffectContext, "ownCodec" | "database">,
  thrown: unknown,
  isTransient: boolean,
): EffectOutcome {
  const value = withChecksum(database, ownCodec.encode(storedError(thrown)) as Encoded);
  return { status: "failed", isTransient, value };
}

/** Restores the recorded error of a failed effect. @throws HoldfastError `CORRUPT_ROW` */
export function readFailure(
  context: Pick<EffectContext, "codec" | "database">,
  effect: Pick<SettledEffect, "key" | "value" | "isTransient">,
): Error {
  const stored = readValue(context, effect);
  if (!isStoredError(stored)) throw corruptEffect(effect.key, "has a failure that is not an error");
  const error = restoredFailure(stored);
  return effect.isTransient ? Object.assign(error, { transient: true }) : error;
}
