import { canonicalText, hashInput, hashedText } from "./canonical.ts";
import { plainCodec, throughCodec, type PayloadCodec } from "./payload-codec.ts";
import { defaultValueLimits, type ValueLimits } from "./value-limits.ts";
import { decodeValue, encodeValue } from "./values.ts";

/** How values become what a column holds, and back. */
export interface ValueCodec {
  encode(value: unknown): string;
  decode(stored: string): unknown;
  /** Equal for equal values of one domain and version; says nothing else about them. */
  hash(domain: string, version: number, value: unknown): string;
  /** The canonical text of a value, the same as a column holds it, and that hash of it. `decode` reads what is stored like anything else. */
  canonical(
    domain: string,
    version: number,
    value: unknown,
  ): {
    readonly text: string;
    readonly stored: string;
    readonly hash: string;
  };
}

export interface ValueCodecOptions {
  readonly payload?: PayloadCodec;
  readonly limits?: ValueLimits;
  /** The hash of a text in hexadecimal; an argument because model/ is pure. */
  readonly sha256Hex: (text: string) => string;
}

export function valueCodec(options: ValueCodecOptions): ValueCodec {
  const { payload = plainCodec, limits = defaultValueLimits } = options;
  const hashText = payload.hash === "sha256" ? options.sha256Hex : payload.hash;
  return {
    encode: (value) =>
      throughCodec(payload, "encode", (text) => payload.encode(text), encodeValue(value, limits)),
    decode: (stored) =>
      decodeValue(throughCodec(payload, "decode", (text) => payload.decode(text), stored)),
    hash: (domain, version, value) =>
      throughCodec(payload, "hash", hashText, hashInput(domain, version, value, limits)),
    canonical(domain, version, value) {
      const text = canonicalText(value, limits);
      return {
        text,
        stored: throughCodec(payload, "encode", (plain) => payload.encode(plain), text),
        hash: throughCodec(payload, "hash", hashText, hashedText(domain, version, text)),
      };
    },
  };
}
