import { expect, test } from "vitest";
import { LoopWatch } from "./loop-watch.ts";
import type { Notice } from "./runtime-event.ts";

/** Uses the processor for a time. */
function compute(ms: number): void {
  const before = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(before);
    if ((user + system) / 1_000 >= ms) return;
  }
}

function watch(): { readonly watch: LoopWatch; readonly said: Notice[] } {
  const said: Notice[] = [];
  const made = new LoopWatch((notice) => said.push(notice));
  made.rests(1_000);
  return { watch: made, said };
}

const holders = () => ({ functions: ["slow"] });

test("[RN14] code that computed for most of a stretch is blamed for it", () => {
  const { watch: each, said } = watch();
  compute(250);
  each.took(300, 0, holders);
  expect(said).toMatchObject([{ level: "warn", details: { functions: ["slow"] } }]);
});

test("[RN14] nobody is blamed for a stretch in which the process was stopped, though it computed too", () => {
  const { watch: each, said } = watch();
  compute(250);
  each.took(60_000, 0, holders);
  expect(said).toEqual([]);
});
