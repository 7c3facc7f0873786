import { isStoredError } from "../values/restored-error.ts";
import type { StoredError } from "../values/stored-error.ts";
import { sealedValue } from "../values/payload-mark.ts";
import type { ValueCodec } from "../values/value-codec.ts";
import { malformed } from "../values/value-reader.ts";
import { decodeValue, encodeValue } from "../values/values.ts";

/** The end of an execution. */
export type ExecutionResult =
  | { readonly kind: "completed"; readonly value: unknown }
  | { readonly kind: "failed"; readonly error: StoredError }
  | { readonly kind: "cancelled"; readonly reason?: string }
  | { readonly kind: "timedOut" };

/** A result as it was recorded. */
export type RecordedResult = ExecutionResult & {
  /** The messages that came and that the code never received; missing when there were none. */
  readonly unread?: number;
};

type Codec = Pick<ValueCodec, "encode" | "decode">;
const plain: Codec = { encode: encodeValue, decode: decodeValue };

/** Returns the text of a result. A completed value may be anything that encodeValue accepts. */
export function encodeResult(result: ExecutionResult, codec: Codec = plain): string {
  return codec.encode(result);
}

/**
 * Reads a result. With `kind` it also accepts one that cannot be read without its codec. @throws
 * HoldfastError `VALUE_MALFORMED` when the text is not a result.
 */
export function decodeResult(
  stored: string,
  codec: Codec = plain,
  kind?: ExecutionResult["kind"],
): ExecutionResult {
  const value = codec.decode(stored);
  if (isResult(value)) return value;
  if (value === sealedValue && kind === "completed") return { kind, value };
  if (value === sealedValue && kind === "failed")
    return { kind, error: { name: "Error", message: sealedValue } };
  throw malformed("it is not the result of a run");
}

export function isResult(value: unknown): value is ExecutionResult {
  if (typeof value !== "object" || value === null) return false;
  const result = value as ExecutionResult;
  switch (result.kind) {
    case "completed":
      return Object.hasOwn(result, "value");
    case "failed":
      return isStoredError(result.error);
    case "cancelled":
      return result.reason === undefined || typeof result.reason === "string";
    case "timedOut":
      return true;
    default:
      result satisfies never;
      return false;
  }
}
