import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeBase64, encodeBase64 } from "./base64.ts";

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("the examples of RFC 4648", () => {
  test.each([
    ["", ""],
    ["f", "Zg=="],
    ["fo", "Zm8="],
    ["foo", "Zm9v"],
    ["foob", "Zm9vYg=="],
    ["fooba", "Zm9vYmE="],
    ["foobar", "Zm9vYmFy"],
  ])("%s is %s", (plain, text) => {
    expect(encodeBase64(ascii(plain))).toBe(text);
    expect(decodeBase64(text)).toEqual(ascii(plain));
  });
});

test("all digits of the alphabet are used", () => {
  expect(encodeBase64(Uint8Array.of(0xfb, 0xff, 0xbf, 0, 0x10, 0x83))).toBe("+/+/ABCD");
});

describe("other spellings are refused", () => {
  test.each([
    ["missing padding", "Zg"],
    ["padding alone", "===="],
    ["too much padding", "Z==="],
    ["padding in the middle", "Zg==Zg=="],
    ["stray bits", "Zh=="],
    ["stray bits in the third digit", "Zm9="],
    ["white space", "Zm9v Zg="],
    ["the URL alphabet", "-_-_"],
    ["characters beyond one byte", "Ā★★★"],
  ])("%s", (_, text) => {
    expect(decodeBase64(text)).toBeUndefined();
  });
});

test("any bytes survive, as the platform's own encoder would write them", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const text = encodeBase64(bytes);
      expect(text).toBe(Buffer.from(bytes).toString("base64"));
      expect(decodeBase64(text)).toEqual(bytes);
    }),
  );
});
