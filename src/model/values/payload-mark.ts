import { HoldfastError, isHoldfastError } from "../errors.ts";
import type { PayloadCodec } from "./payload-codec.ts";

/** The record of a database's payload codec: one row, written with the first value. */
export interface PayloadMark {
  /** The name of that codec; null for unencoded values. */
  readonly codec: string | null;
  /** The known text as that codec encoded it. */
  readonly sample: string;
}

/**
 * The text that every codec encodes at its first use with a database. It has no capitals, since a
 * codec need not keep them.
 */
const knownText = '"holdfast payload codec"';

/**
 * Returns the mark for a database whose first value this codec encodes.
 * @throws HoldfastError `PAYLOAD_CODEC_WRONG` for a codec that cannot read its own output
 */
export function markOf(payload: PayloadCodec | undefined): PayloadMark {
  if (payload === undefined) return { codec: null, sample: knownText };
  let sample: unknown;
  try {
    sample = payload.encode(knownText);
    if (typeof sample === "string" && payload.decode(sample) === knownText)
      return { codec: payload.name, sample };
  } catch (cause) {
    throw cannotReadItself(payload, cause);
  }
  throw cannotReadItself(payload);
}

/**
 * Returns the error for using this codec on a database with this mark; undefined when it is
 * allowed.
 */
export function refusalOf(
  mark: PayloadMark,
  payload: PayloadCodec | undefined,
): HoldfastError | undefined {
  if (payload === undefined) return mark.codec === null ? undefined : codecMissing(mark.codec);
  try {
    if (payload.decode(mark.sample) === knownText) return undefined;
  } catch (cause) {
    return codecWrong(mark, payload, cause);
  }
  return codecWrong(mark, payload);
}

function codecMissing(codec: string): HoldfastError {
  return new HoldfastError(
    "PAYLOAD_CODEC_MISSING",
    `The values of this database use the payload codec "${codec}", and this process has none. Nothing was stored or read. ` +
      "Pass the codec: { payload } for openHoldfast and for stores, or `options` in holdfast.config.ts.",
    { codec },
  );
}

function codecWrong(
  { codec }: PayloadMark,
  { name }: PayloadCodec,
  cause?: unknown,
): HoldfastError {
  return new HoldfastError(
    "PAYLOAD_CODEC_WRONG",
    codec === null
      ? `This database holds unencoded values, and the payload codec "${name}" cannot read them. Nothing was stored or read. ` +
          "Use a codec whose decode() returns such text unchanged, or start with an empty database."
      : `The payload codec "${name}" cannot read the first value that "${codec}" wrote into this database. Nothing was stored or read. ` +
          "Give it the key of this database; after a rotation it must still read values of the old key.",
    { codec: name, expected: codec },
    cause === undefined ? undefined : { cause },
  );
}

/** The error for copying stored values between databases with different codecs. */
export function codecsDiffer(from: string | null, to: string | null): HoldfastError {
  const spoken = (codec: string | null): string => (codec === null ? "none" : `"${codec}"`);
  return new HoldfastError(
    "PAYLOAD_CODEC_WRONG",
    `Values are copied in their stored form, but the payload codec of the source is ${spoken(from)} and that of the target is ${spoken(to)}. Nothing was copied. ` +
      "Copy into a database with the same codec.",
    { codec: from, expected: to },
  );
}

function cannotReadItself({ name }: PayloadCodec, cause?: unknown): HoldfastError {
  return new HoldfastError(
    "PAYLOAD_CODEC_WRONG",
    `The payload codec "${name}" cannot read a text that it just encoded. Nothing was stored. ` +
      "Its decode() must return exactly the text that encode() received.",
    { codec: name, expected: name },
    cause === undefined ? undefined : { cause },
  );
}

/**
 * A stand-in for a missing codec, for read-only viewers. Every value reads as the text "sealed". It
 * encodes nothing.
 */
export const sealedView: PayloadCodec = {
  name: "sealed",
  encode: refuseSealed,
  decode: () => '"sealed"',
  hash: refuseSealed,
};

/** The text that a value reads as without its codec. */
export const sealedValue = "sealed";

function refuseSealed(): never {
  throw new HoldfastError(
    "PAYLOAD_CODEC_MISSING",
    "This database was opened for viewing without its payload codec, so values can be neither written nor compared.",
  );
}

/**
 * True for a value that was refused because its codec is missing or wrong. That says nothing about
 * the value.
 */
export function isSealed(error: unknown): boolean {
  if (!isHoldfastError(error)) return false;
  return error.code === "PAYLOAD_CODEC_MISSING" || error.code === "PAYLOAD_CODEC_WRONG";
}
