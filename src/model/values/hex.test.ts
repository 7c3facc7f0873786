import { expect, test } from "vitest";
import { bytesOfHex } from "./hex.ts";

test("reads hexadecimal digits as bytes", () => {
  expect(bytesOfHex("00ff10")).toEqual(Uint8Array.from([0, 255, 16]));
});
