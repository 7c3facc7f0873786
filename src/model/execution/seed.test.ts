import { expect, test } from "vitest";
import { parseExecutionId } from "../ids/execution-id.ts";
import { executionSeed, runSeed } from "./seed.ts";

// Computed by an independent implementation; replays depend on these numbers.
test.each([
  ["order-42", 0x586d_07f2_8908_894fn],
  ["order-42.o:7_1", 0x5192_f5b8_39a2_6c88n],
  ["E_01HF7YAT00ABCDEFGHJKMNPQRS", 0xd3e6_b794_bd63_6be3n],
])("the seed of %s is pinned", (id, seed) => {
  expect(executionSeed(parseExecutionId(id))).toBe(seed);
});

// The same, over the id, "#" and the number.
test.each([
  ["order-42", 1, 0x79f7_be97_0f21_a398n],
  ["order-42", 2, 0x8339_2c29_5446_3555n],
  ["order-42", 10, 0xdc05_d99c_265f_e4e9n],
  ["order-42.o:7_1", 3, 0xba69_4816_a7d8_09fan],
  ["E_01HF7YAT00ABCDEFGHJKMNPQRS", 1, 0x4677_b6e2_1387_5853n],
])("the seed of %s started anew for time %i is pinned", (id, times, seed) => {
  expect(runSeed(parseExecutionId(id), times)).toBe(seed);
});

test("ten thousand siblings have ten thousand seeds of 64 bits", () => {
  const seeds = new Set<bigint>();
  for (let index = 1; index <= 10_000; index += 1) {
    seeds.add(executionSeed(parseExecutionId(`order-42.n:items_${index}`)));
  }
  expect(seeds.size).toBe(10_000);
  for (const seed of seeds) expect(BigInt.asUintN(64, seed)).toBe(seed);
});
