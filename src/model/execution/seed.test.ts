import { expect, test } from "vitest";
import { parseExecutionId } from "../ids/execution-id.ts";
import { executionSeed } from "./seed.ts";

// Computed by an independent implementation; replays depend on these numbers.
test.each([
  ["order-42", 0x586d_07f2_8908_894fn],
  ["order-42.o:7_1", 0x5192_f5b8_39a2_6c88n],
  ["E_01HF7YAT00ABCDEFGHJKMNPQRS", 0xd3e6_b794_bd63_6be3n],
])("the seed of %s is pinned", (id, seed) => {
  expect(executionSeed(parseExecutionId(id))).toBe(seed);
});

test("ten thousand siblings have ten thousand seeds of 64 bits", () => {
  const seeds = new Set<bigint>();
  for (let index = 1; index <= 10_000; index += 1) {
    seeds.add(executionSeed(parseExecutionId(`order-42.n:items_${index}`)));
  }
  expect(seeds.size).toBe(10_000);
  for (const seed of seeds) expect(BigInt.asUintN(64, seed)).toBe(seed);
});
