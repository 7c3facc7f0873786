import { createHash, createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { plainCodec, type PayloadCodec } from "./payload-codec.ts";
import { valueCodec } from "./value-codec.ts";

const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex");

const value = { b: new Date(0), a: 1 };
const text = '{"b":{"$holdfast":"date","value":"1970-01-01T00:00:00.000Z"},"a":1}';

/** Not encryption, but enough to see that text passes through. */
const sealing: PayloadCodec = {
  name: "sealing",
  encode: (plain) => `sealed:${plain}`,
  decode: (stored) => stored.slice("sealed:".length),
  hash: (plain) => createHmac("sha256", "key").update(plain).digest("hex"),
};

describe("without a payload codec", () => {
  const codec = valueCodec({ sha256Hex });

  test("values are stored readable", () => {
    expect(codec.encode(value)).toBe(text);
    expect(codec.decode(text)).toStrictEqual(value);
  });

  // Digests computed by an independent implementation.
  test("equality hashes are SHA-256 of domain, version and canonical text", () => {
    expect(codec.hash("input", 1, value)).toBe(
      "3a898748f6824594c4e2623ad1ee32ce6467b83864493d717255712dd9814152",
    );
    expect(codec.hash("input", 2, value)).not.toBe(codec.hash("input", 1, value));
    expect(codec.hash("output", 1, value)).not.toBe(codec.hash("input", 1, value));
  });

  test("limits apply", () => {
    const small = valueCodec({ sha256Hex, limits: { charactersMax: 10 } });
    const tooLarge = expect.objectContaining({ code: "VALUE_TOO_LARGE" });
    expect(() => small.encode(value)).toThrow(tooLarge);
    expect(() => small.hash("input", 1, value)).toThrow(tooLarge);
  });
});

describe("with a payload codec", () => {
  const codec = valueCodec({ payload: sealing, sha256Hex });

  test("its text is stored, and read back through it", () => {
    const stored = 'sealed:{"b":{"$holdfast":"date","value":"1970-01-01T00:00:00.000Z"},"a":1}';
    expect(codec.encode(value)).toBe(stored);
    expect(codec.decode(stored)).toStrictEqual(value);
  });

  test("equality hashes are its own", () => {
    expect(codec.hash("input", 1, value)).toBe(
      "ee52171b6e25e93b127c4c44b7914e312a9a57ab4257da87d5107e0ac3367d59",
    );
  });

  test("text written without it is reported, not misread", () => {
    expect(() => codec.decode(text)).toThrow(expect.objectContaining({ code: "VALUE_MALFORMED" }));
  });
});

describe("a payload codec that fails", () => {
  const noKey = (): never => {
    throw new Error("no key");
  };

  test.each([
    ["encode", { encode: noKey }],
    ["decode", { decode: noKey }],
    ["hash", { hash: noKey }],
  ] as const)("by throwing in %s is named, with its error as cause", (step, broken) => {
    const codec = valueCodec({
      payload: { ...sealing, ...broken },
      sha256Hex,
    });
    const calls = {
      encode: () => codec.encode(value),
      decode: () => codec.decode("x"),
      hash: () => codec.hash("input", 1, value),
    };
    expect(calls[step]).toThrow(
      expect.objectContaining({
        code: "PAYLOAD_CODEC_FAILED",
        details: { codec: "sealing", step },
        cause: expect.objectContaining({ message: "no key" }),
      }),
    );
  });

  test("by returning something else than text is named, too", () => {
    const payload = {
      ...plainCodec,
      name: "async",
      encode: async (plain: string) => plain,
    } as unknown as PayloadCodec;
    expect(() => valueCodec({ payload, sha256Hex }).encode(1)).toThrow(
      'The payload codec "async" returned object instead of a string in encode().',
    );
  });
});
