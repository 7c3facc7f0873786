import { expect, test } from "vitest";
import { checksum, sha256Hex } from "./hash.ts";

test.each([
  ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
  ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
  ["é", "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c"],
])("%j has its published digest, as text and as UTF-8 bytes", (text, digest) => {
  expect(sha256Hex(text)).toBe(digest);
  expect(sha256Hex(new TextEncoder().encode(text))).toBe(digest);
});

test("a checksum is the first 16 bytes of SHA-256 in base64url", () => {
  const [text, hex] = ["abc", "ba7816bf8f01cfea414140de5dae2223"];
  expect(checksum(text)).toHaveLength(22);
  expect(Buffer.from(checksum(text), "base64url").toString("hex")).toBe(hex);
});
