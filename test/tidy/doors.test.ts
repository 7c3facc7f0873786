import { expect, test } from "vitest";
import { tooManyNames } from "./doors.ts";
import { treeOf } from "./tree.ts";

const tree = treeOf({
  "src/index.ts": 'export { HoldfastError } from "./model/errors.ts";',
  "src/kernel.ts":
    'export type {} from "./index.ts"; export { sql } from "./sql/statement.ts"; export type { Clock, Entropy as Dice } from "./model/clock.ts";',
  "src/model/clock.ts": "export interface Clock {} export interface Dice {}",
});

test("doors with more names than there may be are reported, with what each has", () => {
  expect(tooManyNames(tree, 4)).toEqual([]);
  expect(tooManyNames(tree, 3)).toEqual([
    expect.stringContaining("The doors hand out 4 names (index 1, kernel 3), 3 at most: "),
  ]);
});
