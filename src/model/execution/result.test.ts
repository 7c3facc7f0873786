import { describe, expect, test } from "vitest";
import { decodeResult, encodeResult, type ExecutionResult } from "./result.ts";

// These texts are on users' disks: a change here is a change of format.
const golden: [ExecutionResult, string][] = [
  [{ kind: "completed", value: null }, '{"kind":"completed","value":null}'],
  [
    { kind: "completed", value: undefined },
    '{"kind":"completed","value":{"$holdfast":"undefined"}}',
  ],
  [
    { kind: "completed", value: { b: 1, a: 2n } },
    '{"kind":"completed","value":{"b":1,"a":{"$holdfast":"bigint","value":"2"}}}',
  ],
  [
    { kind: "failed", error: { name: "Error", message: "m", code: "C" } },
    '{"kind":"failed","error":{"name":"Error","message":"m","code":"C"}}',
  ],
  [{ kind: "cancelled" }, '{"kind":"cancelled"}'],
  [{ kind: "cancelled", reason: "too late" }, '{"kind":"cancelled","reason":"too late"}'],
  [{ kind: "timedOut" }, '{"kind":"timedOut"}'],
];

test.each(golden)("%o is written as pinned and read back", (result, text) => {
  expect(encodeResult(result)).toBe(text);
  expect(decodeResult(text)).toStrictEqual(result);
});

describe("text that is no result is refused", () => {
  test.each([
    "null",
    "1",
    "{}",
    '{"kind":"won"}',
    '{"kind":"completed"}',
    '{"kind":"failed","error":"m"}',
    '{"kind":"cancelled","reason":1}',
    "not JSON",
  ])("%s", (text) => {
    expect(() => decodeResult(text)).toThrow(expect.objectContaining({ code: "VALUE_MALFORMED" }));
  });
});

test("a result goes through the codec it is given", () => {
  const codec = {
    encode: (value: unknown) => `<${JSON.stringify(value)}>`,
    decode: (stored: string): unknown => JSON.parse(stored.slice(1, -1)),
  };
  expect(encodeResult({ kind: "timedOut" }, codec)).toBe('<{"kind":"timedOut"}>');
  expect(decodeResult('<{"kind":"timedOut"}>', codec)).toEqual({
    kind: "timedOut",
  });
});
