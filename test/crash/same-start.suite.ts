import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "vitest";
import { Child } from "./child.ts";

/** Two processes start the same fifty runs at once: each is one run, and runs once. Tells how many ran. */
export async function startsOnce(place: string, effects: string): Promise<number> {
  writeFileSync(effects, "");
  const starters = [0, 1].map(() => new Child("same-starter.ts", [place, effects]));
  try {
    await Promise.all(starters.map((starter) => starter.reported(1)));
    for (const starter of starters) starter.tell("go");
    await Promise.all(starters.map((starter) => starter.reported(2)));
    const all = Array.from({ length: 50 }, (_, n) => n);
    for (const { lines, failures } of starters) {
      expect(failures).toBe("");
      expect(JSON.parse(lines[1] ?? "")).toEqual(all);
    }
    const done = readFileSync(effects, "utf8").trim().split("\n").map(Number);
    expect(done.toSorted((a, b) => a - b)).toEqual(all);
    return done.length;
  } finally {
    for (const starter of starters) {
      starter.kill();
      await starter.ended;
    }
  }
}
