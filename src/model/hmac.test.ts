import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { bytesOfHex } from "./hex.ts";
import { hmacSha256Hex } from "./hmac.ts";

const tools = {
  sha256Hex: (bytes: Uint8Array) =>
    createHash("sha256").update(bytes).digest("hex"),
};
const text = (given: string): Uint8Array => new TextEncoder().encode(given);

describe("HMAC with SHA-256", () => {
  test("answers as RFC 4231 says", () => {
    expect(
      hmacSha256Hex(tools, new Uint8Array(20).fill(0x0b), text("Hi There")),
    ).toBe("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    expect(
      hmacSha256Hex(tools, text("Jefe"), text("what do ya want for nothing?")),
    ).toBe("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    expect(
      hmacSha256Hex(
        tools,
        new Uint8Array(20).fill(0xaa),
        new Uint8Array(50).fill(0xdd),
      ),
    ).toBe("773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  });

  test("reads hexadecimal digits as bytes", () => {
    expect(bytesOfHex("00ff10")).toEqual(Uint8Array.from([0, 255, 16]));
  });
});
