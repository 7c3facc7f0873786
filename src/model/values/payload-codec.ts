import { HoldfastError } from "../errors.ts";

/**
 * Changes the text of values on its way to and from the database: encryption,
 * compression. Synchronous, because values are encoded inside transactions;
 * fetch keys before opening.
 */
export interface PayloadCodec {
  /** Shown in errors. */
  readonly name: string;
  encode(text: string): string;
  decode(stored: string): string;
  /**
   * How values are compared without being read. A codec that encrypts must
   * give a keyed hash (an HMAC): a plain one would let a reader of the file
   * test guesses.
   */
  readonly hash: "sha256" | ((text: string) => string);
}

/** Values stay readable in the database. */
export const plainCodec: PayloadCodec = {
  name: "plain",
  encode: (text) => text,
  decode: (stored) => stored,
  hash: "sha256",
};

/** Runs a user's codec, so that a failure names it and what it was doing. */
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
      `Check the codec and its keys; it must stay able to decode what it ever encoded.`,
    { codec: codec.name, step },
    options,
  );
}
