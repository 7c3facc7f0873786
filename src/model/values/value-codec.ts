import { canonicalText, hashInput, hashedText } from "./canonical.ts";
import { plainCodec, throughCodec, type PayloadCodec } from "./payload-codec.ts";
import { sealedView } from "./payload-mark.ts";
import { defaultValueLimits, type ValueLimits } from "./value-limits.ts";
import { decodeValue, encodeValue } from "./values.ts";

/** Converts values to their stored form and back. */
export interface ValueCodec {
  encode(value: unknown): string;
  /**
   * The same, with the value as it will be read. A hash beside it is made of
   * that: a getter may answer otherwise when it is read a second time.
   */
  encodeOnce(value: unknown): { readonly stored: string; readonly read: unknown };
  /** Passes a text that `clear.encode` made, or a JSON list of such texts, through the payload codec. */
  encodeText(text: string): string;
  decode(stored: string): unknown;
  /**
   * Returns equal hashes for equal values of one domain and version. The hash reveals nothing else
   * about them.
   */
  hash(domain: string, version: number, value: unknown): string;
  /**
   * True when the hash belongs to a value that was read. The value may exceed today's limits. A
   * codec for viewing sealed values compares nothing.
   */
  agrees(domain: string, version: number, value: unknown, hash: string): boolean;
  /**
   * The hash of a value in the clear, which it has where it was stored before
   * the database got a codec with a key; undefined where `hash` is that.
   */
  clearHash(domain: string, version: number, value: unknown): string | undefined;
  /** The canonical text of a value, the same as a column holds it, and those hashes of it. `decode` reads what is stored like anything else. */
  canonical(
    domain: string,
    version: number,
    value: unknown,
  ): {
    readonly text: string;
    readonly stored: string;
    readonly hash: string;
    readonly clearHash: string | undefined;
  };
  /**
   * The same functions without the payload codec, for results without a user's data. `decode` reads
   * those too.
   */
  readonly clear: Pick<ValueCodec, "encode" | "hash" | "agrees">;
}

export interface ValueCodecOptions {
  readonly payload?: PayloadCodec;
  readonly limits?: ValueLimits;
  /** The hash of a text in hexadecimal; passed in because model/ is pure. */
  readonly sha256Hex: (text: string) => string;
  /** Called before a value is read or written. Throws when that is not allowed. */
  readonly assertOpen?: (kind: "read" | "write") => void;
}

export function valueCodec(options: ValueCodecOptions): ValueCodec {
  const {
    payload = plainCodec,
    limits = defaultValueLimits,
    assertOpen = () => undefined,
  } = options;
  const { sha256Hex } = options;
  const hashText = payload.hash === "sha256" ? sha256Hex : payload.hash;
  const isKeyed = hashText !== sha256Hex;
  const storedText = (text: string): string =>
    throughCodec(payload, "encode", (plain) => payload.encode(plain), text);
  return {
    encode(value) {
      assertOpen("write");
      return storedText(encodeValue(value, limits));
    },
    encodeOnce(value) {
      assertOpen("write");
      const text = encodeValue(value, limits);
      return { stored: storedText(text), read: isFixed(value) ? value : decodeValue(text) };
    },
    encodeText(text) {
      assertOpen("write");
      return storedText(text);
    },
    decode(stored) {
      if (isClear(stored)) return decodeValue(stored);
      assertOpen("read");
      return decodeValue(throughCodec(payload, "decode", (text) => payload.decode(text), stored));
    },
    hash(domain, version, value) {
      assertOpen("write");
      return throughCodec(payload, "hash", hashText, hashInput(domain, version, value, limits));
    },
    agrees(domain, version, value, hash) {
      if (payload === sealedView) return true;
      assertOpen("read");
      const text = hashInput(domain, version, value, unlimited);
      // The second comparison is for values that were written before the database had this codec.
      return (
        throughCodec(payload, "hash", hashText, text) === hash ||
        (isKeyed && sha256Hex(text) === hash)
      );
    },
    clearHash: (domain, version, value) =>
      isKeyed ? sha256Hex(hashInput(domain, version, value, limits)) : undefined,
    canonical(domain, version, value) {
      assertOpen("write");
      const text = canonicalText(value, limits);
      const hashed = hashedText(domain, version, text);
      return {
        text,
        stored: storedText(text),
        hash: throughCodec(payload, "hash", hashText, hashed),
        clearHash: isKeyed ? sha256Hex(hashed) : undefined,
      };
    },
    clear: {
      encode: (value) => encodeValue(value, limits),
      hash: (domain, version, value) => sha256Hex(hashInput(domain, version, value, limits)),
      agrees: (domain, version, value, hash) =>
        sha256Hex(hashInput(domain, version, value, unlimited)) === hash,
    },
  };
}

/** True for a value that is the same at each reading. */
function isFixed(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

const unlimited: ValueLimits = { charactersMax: Number.MAX_SAFE_INTEGER };

const clearBeginnings = ['{"kind":"cancelled"', '{"kind":"timedOut"'];
const turnBeginning = /^\{"turn":\d+,"session":"/;

/**
 * True for results that only say that a run was cancelled or timed out, and for the inputs of
 * turns. They are stored unencoded, so a process without the codec can cancel a run or wake a
 * session.
 */
function isClear(stored: string): boolean {
  return (
    clearBeginnings.some((beginning) => stored.startsWith(beginning)) || turnBeginning.test(stored)
  );
}
