import { isStoredError } from "../values/restored-error.ts";
import type { StoredError } from "../values/stored-error.ts";
import type { ValueCodec } from "../values/value-codec.ts";
import { malformed } from "../values/value-reader.ts";
import { decodeValue, encodeValue } from "../values/values.ts";

/** How an execution ended. */
export type ExecutionResult =
  | { readonly kind: "completed"; readonly value: unknown }
  | { readonly kind: "failed"; readonly error: StoredError }
  | { readonly kind: "cancelled"; readonly reason?: string }
  | { readonly kind: "timedOut" };

type Codec = Pick<ValueCodec, "encode" | "decode">;
const plain: Codec = { encode: encodeValue, decode: decodeValue };

/** The text of a result; a completed value may be anything encodeValue takes. */
export function encodeResult(result: ExecutionResult, codec: Codec = plain): string {
  return codec.encode(result);
}

/** @throws HoldfastError `VALUE_MALFORMED` when the text is no result. */
export function decodeResult(stored: string, codec: Codec = plain): ExecutionResult {
  const value = codec.decode(stored);
  if (isResult(value)) return value;
  throw malformed("it is not the result of an execution");
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
