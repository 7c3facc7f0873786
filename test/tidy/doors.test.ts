import { expect, test } from "vitest";
import { unexportedTypes } from "./doors.ts";
import { treeOf } from "./tree.ts";

const store = `
  import type { Clock } from "../model/clock.ts";
  interface Hidden { readonly clock: Clock }
  export interface Options extends Hidden { readonly n: number }
  export interface Answer { readonly at: number }
  export function open(options: Options): Promise<Answer> {
    const inside: Secret = options;
    return ask(inside);
  }
  export interface Secret {}
`;

test("a type in a signature that no door hands out is reported, also behind a helper", () => {
  const tree = treeOf({
    "src/stores.ts":
      'export { open } from "./stores/open.ts"; export type { Options } from "./stores/open.ts";',
    "src/stores/open.ts": store,
    "src/model/clock.ts": "export interface Clock { now(): number }",
  });
  expect(unexportedTypes(tree)).toEqual([
    "src/stores.ts: open shows the type Answer of src/stores/open.ts: export that too.",
    "src/stores.ts: Options shows the type Clock of src/model/clock.ts: export that too.",
  ]);
});

test("any door will do, and bodies are not looked into", () => {
  const tree = treeOf({
    "src/stores.ts":
      'export { open } from "./stores/open.ts"; export type { Options, Answer } from "./stores/open.ts";',
    "src/index.ts": 'export type { Clock } from "./model/clock.ts";',
    "src/stores/open.ts": store,
    "src/model/clock.ts": "export interface Clock { now(): number }",
  });
  expect(unexportedTypes(tree)).toEqual([]);
});
