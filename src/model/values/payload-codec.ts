import { HoldfastError } from "../errors.ts";

/**
 * Changes the text of values on its way to and from the database, for encryption or compression. It
 * is synchronous, because values are encoded inside transactions. Fetch keys before opening the
 * database.
 */
export interface PayloadCodec {
  /** The name that errors show. */
  readonly name: string;
  encode(text: string): string;
  decode(stored: string): string;
  /**
   * The hash for comparing values without reading them. A codec that encrypts must use a keyed hash
   * (an HMAC). With a plain hash, a reader of the file could test guesses.
   */
  readonly hash: "sha256" | ((text: string) => string);
}

/** A codec that leaves values readable in the database. */
export const plainCodec: PayloadCodec = {
  name: "plain",
  encode: (text) => text,
  decode: (stored) => stored,
  hash: "sha256",
};

/** Runs a user's codec. A failure names the codec and its step. */
export function throughCodec(
  codec: PayloadCodec,
  step: "encode" | "decode" | "hash",
  convert: (text: string) => string,
  text: string,
): string {
  let result: unknown;
  try {
    result = convert(text);
  } catch (cause) {
    throw failed(codec, step, "threw an error (see cause)", { cause });
  }
  if (typeof result === "string") return result;
  throw failed(codec, step, `returned ${typeof result} instead of a string`);
}

function failed(
  codec: PayloadCodec,
  step: string,
  what: string,
  options?: { readonly cause: unknown },
): HoldfastError {
  return new HoldfastError(
    "PAYLOAD_CODEC_FAILED",
    `The payload codec "${codec.name}" ${what} in ${step}(). Nothing was stored or changed. ` +
      `Check the codec and its keys; it must be able to decode every value that it has ever encoded.`,
    { codec: codec.name, step },
    options,
  );
}
