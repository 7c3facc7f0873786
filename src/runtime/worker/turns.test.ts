import { expect, test } from "vitest";
import { Turns } from "./turns.ts";

test("who has fewer running has less load, whoever had the last turns", () => {
  const turns = new Turns();
  for (let turn = 0; turn < 500; turn += 1) turns.add("b");
  expect(turns.loadOf("b", 1)).toBeLessThan(turns.loadOf("a", 2));
  expect(turns.loadOf("a", 1)).toBeLessThan(turns.loadOf("b", 1));
});

test("turns that are long over are forgotten", () => {
  const turns = new Turns();
  for (let turn = 0; turn < 100; turn += 1) turns.add("a");
  for (let turn = 0; turn < 100; turn += 1) turns.add("b");
  expect(turns.loadOf("a", 0)).toBe(0);
  for (let turn = 0; turn < 50; turn += 1) turns.add("a");
  expect(turns.loadOf("a", 0)).toBe(turns.loadOf("b", 0));
});
