import { expect } from "vitest";
import type { ManualClock } from "../../src/model/time/clock.ts";
import type { Database } from "../../src/kernel.ts";
import { expectSound } from "../conformance/sound.ts";
import { isDeep, seed, seededRandom } from "../depth.ts";
import { Child } from "./child.ts";
import { actions } from "./actions.ts";
import type { ActionName } from "./actions.ts";
import { dumpOf } from "./dump.ts";
import type { Dump } from "./dump.ts";
import type { KillPoint } from "./fault-points.ts";
import type { Orders } from "./prepare-actions.ts";

/** Where processes are killed: files, or a schema of a server. */
export interface KillFixture {
  readonly orders: Orders;
  /** Whether the death of a process is known at once. Else its leases have to run out. */
  readonly provesDeath: boolean;
  /** How many kills there may be at a time. */
  readonly lanes: number;
  /** What was prepared, once more, under the name that a child is told. */
  renewed(): Promise<string>;
  /** That as a child has left it, opened by this process at 2,000. */
  opened(place: string): Promise<OpenedPlace>;
}

interface OpenedPlace {
  readonly database: Database;
  readonly clock: ManualClock;
  close(): Promise<void>;
}

/** What a kill left, and what the process had said before. */
export interface Outcome extends OpenedPlace {
  readonly orders: Orders;
  readonly provesDeath: boolean;
  readonly said: readonly string[];
}

/** Kills that may come to nothing, since their statement was not made. */
const missedMax = 6;

/**
 * Kills processes at every statement of an action, and has each outcome looked
 * at, which answers with a name for what it found.
 */
export async function found(
  fixture: KillFixture,
  action: ActionName,
  transactions: number,
  look: (outcome: Outcome) => Promise<string>,
): Promise<readonly string[]> {
  const seen = new Set<string>();
  let missed = 0;
  const points = (await killPoints(fixture, action, transactions)).values();
  const killOneByOne = async (): Promise<void> => {
    for (const point of points) {
      const place = await fixture.renewed();
      const child = await done(fixture, place, action, point);
      const end = await child.ended;
      // How often it looks for work depends on who is quicker, so the last statements may not come.
      const isMissed = point.of === "statement" && statementsOf(child.lines) < point.at;
      if (isMissed) missed += 1;
      else expect([end, point]).toEqual(["SIGKILL", point]);
      const opened = await fixture.opened(place);
      await expectSound(opened.database);
      // One that was not killed has said so in its last line, which is not the action's.
      const said = isMissed ? child.lines.slice(0, -1) : child.lines;
      seen.add(await look({ ...fixture, ...opened, said }));
      await opened.close();
    }
  };
  await Promise.all(Array.from({ length: fixture.lanes }, killOneByOne));
  expect(missed).toBeLessThanOrEqual(missedMax);
  return [...seen].toSorted();
}

/**
 * The same for an action that is one transaction: what it left is the old state
 * or the new one, entirely. Who does it again gets the answers that belong to
 * either, and leaves the new state.
 */
export async function foundWhole(
  fixture: KillFixture,
  action: ActionName,
  answers: Readonly<Record<"old" | "new", object>>,
  check: (database: Database) => Promise<void>,
): Promise<readonly string[]> {
  const states = await statesOf(fixture, action);
  expect(states.new).not.toEqual(states.old);
  return found(fixture, action, 1, async ({ database, orders }) => {
    const again = () => actions[action](database, orders, () => undefined);
    const state = await dumpOf(database);
    const isNew = JSON.stringify(state) === JSON.stringify(states.new);
    if (!isNew) expect(state).toEqual(states.old);
    const name = isNew ? "new" : "old";
    expect(await again()).toMatchObject(answers[name]);
    expect(await dumpOf(database)).toEqual(states.new);
    await check(database);
    const checked = await dumpOf(database);
    expect(await again()).toMatchObject(answers.new);
    expect(await dumpOf(database)).toEqual(checked);
    return name;
  });
}

/** What is stored before an action, and after it if nobody is killed. */
async function statesOf(
  fixture: KillFixture,
  action: ActionName,
): Promise<{ readonly old: Dump; readonly new: Dump }> {
  const opened = await fixture.opened(await fixture.renewed());
  const before = await dumpOf(opened.database);
  await actions[action](opened.database, fixture.orders, () => undefined);
  const after = await dumpOf(opened.database);
  await opened.close();
  return { old: before, new: after };
}

async function done(
  { orders }: KillFixture,
  place: string,
  action: ActionName,
  point: KillPoint | undefined,
): Promise<Child> {
  const child = new Child("action-process.ts", [
    place,
    action,
    JSON.stringify(orders),
    point === undefined ? "" : JSON.stringify(point),
  ]);
  await child.ended;
  expect(child.failures).toBe("");
  return child;
}

/**
 * Both sides of every statement, and on a server a COMMIT that is sent and not
 * answered. In a short round the commits, where what is stored changes, and
 * before the first of them a place that the seed chooses.
 */
async function killPoints(
  fixture: KillFixture,
  action: ActionName,
  transactions: number,
): Promise<readonly KillPoint[]> {
  const commits = numbers(transactions);
  if (!isDeep) {
    const chosen = Math.floor(seededRandom(seed)() * firstCommitMin);
    return [
      chosen === 0
        ? { of: "commit", at: 1, when: "before" }
        : { of: "statement", at: chosen, when: "after" },
      ...pointsOf("commit", commits.slice(1).slice(-1), "before"),
      ...pointsOf("commit", commits, "after"),
    ];
  }
  const whole = await done(fixture, await fixture.renewed(), action, undefined);
  const all = numbers(statementsOf(whole.lines));
  expect(all.length).toBeGreaterThan(firstCommitMin);
  return [
    ...pointsOf("statement", all, "before"),
    ...pointsOf("statement", all, "after"),
    // Whatever was counted, what each commit leaves is looked at.
    ...pointsOf("commit", commits, "after"),
    ...(fixture.provesDeath ? [] : pointsOf("commit", commits, "during")),
  ];
}

/** How many statements a process made that did all of it; NaN for one that did not. */
function statementsOf(lines: readonly string[]): number {
  return Number(/^done (\d+)$/.exec(lines.at(-1) ?? "")?.[1]);
}

/** No action commits with an earlier statement. */
const firstCommitMin = 5;

function numbers(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

function pointsOf(
  of: KillPoint["of"],
  places: readonly number[],
  when: KillPoint["when"],
): readonly KillPoint[] {
  return places.map((at) => ({ of, at, when }));
}
