import { expect, test } from "vitest";
import { bannedCalls } from "./calls.ts";
import { treeOf } from "./tree.ts";

test.each([
  ["Date.now();", "Date.now"],
  ["const now = Date.now;", "Date.now"],
  ["new Date();", "new Date()"],
  ["performance.now();", "performance.now"],
  ["process.hrtime.bigint();", "process.hrtime"],
  ["Math.random();", "Math.random"],
  ['import { randomUUID } from "node:crypto";', "randomUUID"],
  ["crypto.randomUUID();", "randomUUID"],
  ["setTimeout(stop, 5);", "setTimeout"],
  ["globalThis.setInterval(stop, 5);", "setInterval"],
  ["queue.push({ later: setImmediate });", "setImmediate"],
  ['import { setTimeout } from "timers/promises";setTimeout(5);', "setTimeout"],
  ['import * as timers from "node:timers/promises";', "node:timers/promises"],
])("%s is reported outside of host/", (code, name) => {
  const problems = bannedCalls(treeOf({ "src/stores/a.ts": code }));
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(`src/stores/a.ts:1: ${name} is only for`);
});

test("a report names the replacement", () => {
  expect(bannedCalls(treeOf({ "src/sql/a.ts": "\nDate.now();" }))).toEqual([
    "src/sql/a.ts:2: Date.now is only for src/host/: take the time from the Clock you are given (the real one is host/clock.ts).",
  ]);
});

test.each([
  "new Date(ms);",
  "clock.now();",
  "timers.setTimeout(stop, 5);",
  "interface Timers { setTimeout(ms: number): void }",
  "const timers = { setTimeout: 1 };",
  'import { randomBytes } from "../host/entropy.ts";',
])("%s is allowed", (code) => {
  expect(bannedCalls(treeOf({ "src/backends/a.ts": code }))).toEqual([]);
});

test("host/, tests, worker threads and what is not src/ may ask the machine", () => {
  const tree = treeOf({
    "src/host/clock.ts": "Date.now();",
    "src/model/clock.test.ts": "Date.now();",
    "src/backends/sqlite/flush-thread.js": "performance.now();",
    "bench/main.ts": "performance.now();",
  });
  expect(bannedCalls(tree)).toEqual([]);
});
