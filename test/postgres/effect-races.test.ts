import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { rows, sql } from "../../src/kernel.ts";
import { effects } from "../../src/effects.ts";
import { sessions } from "../../src/sessions.ts";
import { executeWithAnother, relieved } from "../crash/effect-pair.ts";
import { isDeep } from "../depth.ts";
import { until, withPlace, type Place } from "./place.ts";

const rounds = isDeep ? 200 : 15;
const ask = { kind: "tool", input: 1 };

/** Waiting for a row is Postgres' own: on SQLite one waits for the other before it begins. */
describe("two pools that execute effects of one session at once", () => {
  test("one of them runs each, and all return its value", () =>
    withPlace(async (place) => {
      const pools = [await place.open(), await place.open()];
      const [first] = pools;
      if (first !== undefined) await sessions(first).create("s");
      const stores = pools.map((pool) => effects(pool));
      for (let round = 0; round < rounds; round += 1) {
        let runs = 0;
        const values = await Promise.all(
          [...stores, ...stores].map((store, index) =>
            store.execute({ kind: "turn", session: "s", id: `t${round}` }, "k", ask, () => {
              runs += 1;
              return index;
            }),
          ),
        );
        expect(runs).toBe(1);
        expect(new Set(values).size).toBe(1);
      }
    }));

  test("a session that is deleted meanwhile leaves no effect behind", () =>
    withPlace(async (place) => {
      const clock = manualClock(1_000);
      const one = await place.open({ clock });
      const two = await place.open({ clock });
      const store = effects(two);
      for (let round = 0; round < rounds; round += 1) {
        await sessions(one).create("s");
        const scope = { kind: "turn", session: "s", id: "t" };
        await Promise.all([
          sessions(one).delete("s"),
          ...[1, 2, 3].map((n) => store.claim(scope, `k${n}`, ask).catch(() => undefined)),
        ]);
        await sessions(one).delete("s");
        const left = await one.read("left", () => rows(sql`SELECT key FROM holdfast_effect`));
        expect(left).toEqual([]);
      }
    }));
});

/** Resolves when a call waits for a row that another session holds. */
async function waitsForLock(place: Place): Promise<void> {
  const watch = place.shell();
  await until(async () => {
    const waiting = await watch`
      SELECT 1 FROM pg_stat_activity
      WHERE application_name = ${place.app} AND wait_event_type = 'Lock'`;
    return waiting.length > 0;
  });
}

test("a result that comes while its claim is being renewed counts by the renewal", () =>
  withPlace(async (place) => {
    const clock = manualClock(1_000);
    const store = effects(await place.open({ clock }));
    const scope = { kind: "operation", id: "o" };
    const claimed = await store.claim(scope, "k", ask, { lease: 1_000 });
    if (claimed.kind !== "claimed") throw new Error("Nobody else is here.");
    const renewing = place.shell();
    await renewing.unsafe("BEGIN");
    await renewing`UPDATE holdfast_effect SET renewed_at = 1500, expires_at = 5000`;
    clock.set(2_500);
    const finished = store.complete(claimed.claim, "late and yet in time");
    await waitsForLock(place);
    await renewing.unsafe("COMMIT");
    await finished;
    expect(await store.replay(scope, "k", ask)).toBe("late and yet in time");
  }));

test("a result that waited for its row past the end of its claim is refused", () =>
  withPlace(async (place) => {
    const clock = manualClock(1_000);
    const database = await place.open({ clock });
    const store = effects(database);
    const scope = { kind: "operation", id: "o" };
    const claimed = await store.claim(scope, "k", ask, { lease: 1_000 });
    if (claimed.kind !== "claimed") throw new Error("The effect is new, so its claim is free.");
    const holding = place.shell();
    await holding.unsafe("BEGIN");
    await holding`SELECT key FROM holdfast_effect FOR UPDATE`;
    clock.set(1_500);
    const finished = store.complete(claimed.claim, "too late");
    await waitsForLock(place);
    clock.set(2_500);
    await holding.unsafe("COMMIT");
    await expect(finished).rejects.toMatchObject({ code: "EFFECT_LEASE_LOST" });
    const status = await database.read("status", () =>
      rows(sql`SELECT status FROM holdfast_effect`),
    );
    expect(status).toEqual([{ status: "inProgress" }]);
  }));

describe("two processes that execute effects of one session", () => {
  test("one runs it and the other returns its value; when the first is killed midway, the second runs it once the lease has run out", () =>
    withPlace(async (place) => {
      const database = await place.open();
      await sessions(database).create("s");
      const clock = manualClock(database.clock.now());
      const executed = await executeWithAnother(
        `${place.url}#${place.schema}`,
        effects(database, { clock }),
        async ({ claimed, runs }) => {
          // On another machine it could live on without a connection.
          expect(await claimed()).toBe("busy");
          expect(runs()).toBe(0);
          clock.advance(2 * 3_600_000);
        },
      );
      expect(executed).toEqual(relieved);
    }));
});
