import { expect, test } from "vitest";
import { manualClock } from "../../src/model/clock.ts";
import { parseSessionId } from "../../src/model/session-id.ts";
import { sessions } from "../../src/stores/session/index.ts";
import { dumpOf } from "../conformance/session-scene.ts";
import { Child } from "../crash/child.ts";
import { killPoints, preparedTurn, wholeTurn } from "../crash/turn.ts";
import type { KillPoint, TurnOrder } from "../crash/turn.ts";
import { withPlace } from "./place.ts";
import type { Place } from "./place.ts";

/** Commits the turn in a process that kills itself at a statement; 0 lets it live. */
async function committed(
  { schema }: Place,
  order: TurnOrder,
  { at, when }: KillPoint,
): Promise<Child> {
  const child = new Child("turn-committer-on-server.ts", [
    schema,
    at,
    when,
    JSON.stringify(order),
  ]);
  await child.ended;
  expect(child.errors).toBe("");
  return child;
}

const never: KillPoint = { at: 0, when: "before" };

async function statementsOfTurn(): Promise<number> {
  let statements = 0;
  await withPlace(async (place) => {
    const database = await place.open({ clock: manualClock(1_000) });
    const { order } = await preparedTurn(database);
    const { lines } = await committed(place, order, never);
    statements = Number(/^committed (\d+)$/.exec(lines[0] ?? "")?.[1]);
  });
  expect(statements).toBeGreaterThan(20);
  return statements;
}

test(
  "[AX21] a client that is killed at every statement of a turn commit leaves the old state, and the turn can be repeated",
  { timeout: 300_000 },
  () =>
    withPlace(async (place) => {
      const database = await place.open({ clock: manualClock(1_000) });
      const { order, before } = await preparedTurn(database);
      // No kill leaves anything behind, so one schema serves them all.
      for (const point of killPoints(await statementsOfTurn())) {
        const child = await committed(place, order, point);
        expect(await child.ended).toBe("SIGKILL");
        expect(await dumpOf(database)).toEqual(before);
      }
      const whole = await committed(place, order, never);
      expect(whole.lines[0]).toMatch(/^committed /);
      const after = await dumpOf(database);
      expect(after).not.toEqual(before);
      const handle = { id: parseSessionId("s"), generation: 1 };
      expect(
        await sessions(database).commit(handle, wholeTurn(order)),
      ).toMatchObject({ kind: "replayed", revision: 2, leaf: "own" });
      expect(await dumpOf(database)).toEqual(after);
    }),
);
