import { onTestFinished } from "vitest";
import { Child } from "./child.ts";

/**
 * Lets several processes open a new database and set up the same tables at
 * once. Answers with how each ended and what it had applied, in order of that.
 */
export async function setUpAtOnce(place: string): Promise<readonly string[]> {
  const children = Array.from({ length: 4 }, () => {
    const child = new Child("set-up-runner.ts", [place]);
    onTestFinished(() => child.kill());
    return child;
  });
  for (const child of children) await child.reported(1);
  for (const child of children) child.tell("go");
  const outcomes: string[] = [];
  for (const child of children)
    outcomes.push(`${await child.ended}: ${child.lines[1] ?? ""}${child.errors}`);
  return outcomes.toSorted((a, b) => a.localeCompare(b));
}

/** One of them has applied all, and nobody failed. */
export const setUpOnce: readonly string[] = [
  "0: ",
  "0: ",
  "0: ",
  "0: 0001_goods 0002_hat 0003_more_hats",
];
