import { expect, onTestFinished } from "vitest";
import type { Effects } from "../../src/effects.ts";
import { Child } from "./child.ts";

const turn = { kind: "turn", session: "s", id: "t1" };
const ask = { kind: "tool", input: 1 };

/** What becomes of an effect between the death of the one who ran it and the next run. */
export type Interval = (dead: {
  /** Who is at the effect, as somebody is told who asks for it. */
  readonly claimed: () => Promise<string>;
  readonly runs: () => number;
}) => Promise<void>;

/** What this process got of both effects, and how often it ran one. */
export interface Executed {
  readonly first: readonly string[];
  readonly second: readonly string[];
  readonly runs: number;
}

/** One of two processes ran the first, and the other one the second after it had died. */
export const relieved: Executed = {
  first: ["a by the child", "a by the child"],
  second: ["b by the parent, again", "b by the parent, again"],
  runs: 1,
};

/**
 * A child and this process execute the effects of one session: the child runs
 * the first and this one returns its value, then the child is killed while it
 * runs the second, of whose lease an hour is left.
 */
export async function executeWithAnother(
  place: string,
  store: Effects,
  interval: Interval,
): Promise<Executed> {
  const child = new Child("effect-holder.ts", [place]);
  onTestFinished(() => child.kill());
  await child.reported(1);
  child.tell("a");
  await child.reported(2);
  expect([...child.lines, child.errors]).toEqual(["open", "runs a", ""]);

  let runs = 0;
  const execute = (key: string): Promise<string> =>
    store.execute(turn, key, ask, ({ isRepeat }) => {
      runs += 1;
      return `${key} by the parent, ${isRepeat ? "again" : "first"}`;
    });
  const waiting = execute("a");
  child.tell("b");
  const first = await waiting;
  await child.reported(3);

  const calls = [execute("b"), execute("b")];
  child.kill();
  await child.ended;
  await interval({
    claimed: async () => (await store.claim(turn, "b", ask)).kind,
    runs: () => runs,
  });
  const second = await Promise.all(calls);
  return { first: [first, await execute("a")], second, runs };
}
