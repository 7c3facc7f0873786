import { expect, test } from "vitest";
import { byteTools } from "../../host/bytes.ts";
import { hashed } from "./byte-store.ts";

test("many bytes are hashed with a pause after each mebibyte, few without", async () => {
  let pauses = 0;
  const database = {
    bytes: byteTools,
    pause() {
      pauses += 1;
      return Promise.resolve();
    },
  };
  expect(await hashed(database, new TextEncoder().encode("abc"))).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
  expect(pauses).toBe(0);
  expect(await hashed(database, new Uint8Array(2_621_440))).toBe(
    "6de7493c5c90f643357c268fbaaf461c1567e0334e4948023ce17268403aa37a",
  );
  expect(pauses).toBe(3);
});
