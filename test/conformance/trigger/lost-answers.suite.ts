import { describe, expect, test } from "vitest";
import { schedules, triggers } from "../../../src/triggers.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { Faults, until } from "../lease/leased-sessions.ts";
import {
  fired,
  hour,
  inTriggers,
  monday,
  noteInstant,
  processIds,
  storedTriggers,
  webhook,
} from "./fixture.ts";
import { countingClock } from "../wait-fixture.ts";

export function triggerLostAnswersSuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  describe("a write of triggers whose answer is lost", () => {
    test(
      "can be repeated, and then has happened once",
      fixture(async ({ mine, clock }) => {
        const faults = new Faults(mine.database);
        const store = triggers(faults.database, { clock });
        const target = { kind: "build" };
        const draft = { key: "a", source: webhook, target };
        for (const [call, again] of [
          [() => store.subscribe(draft), { existed: true }],
          [
            () =>
              store.revise("a", { source: webhook, target, label: "l" }, { expectedRevision: 1 }),
            { isChanged: false, subscription: { revision: 2 } },
          ],
          [
            () => store.record({ key: "o", source: webhook, payload: 1 }),
            { kind: "replayed", deliveries: [{ refusal: null }] },
          ],
        ] as const) {
          faults.losesAnswer = true;
          expect(await rejection(call())).toMatchObject({
            code: "OUTCOME_UNKNOWN",
            retryable: true,
          });
          const before = await storedTriggers(mine);
          expect(await call()).toMatchObject(again);
          expect(await storedTriggers(mine)).toEqual(before);
        }
        expect(await processIds(mine)).toHaveLength(1);
      }),
    );

    test(
      "leaves the scheduler at the next instant, and the instant fired once",
      fixture(async ({ mine, clock }) => {
        const faults = new Faults(mine.database);
        const store = schedules(faults.database, { clock });
        await store.put("test", "a", { cron: "0 * * * *" });
        const told: unknown[] = [];
        const running = store.run(
          { test: noteInstant },
          { onError: (error) => told.push((error as { code?: string }).code) },
        );
        await mine.quiet();
        faults.losesAnswer = true;
        for (const hours of [1, 2]) {
          clock.set(monday + hours * hour);
          await mine.quiet();
        }
        await running.close();
        expect(told).toEqual(["OUTCOME_UNKNOWN"]);
        expect(await fired(mine)).toEqual([monday + hour, monday + 2 * hour]);
      }),
    );
  });

  test(
    "a schedule that fails in the middle of a backlog goes on there, later",
    fixture(async ({ mine, clock }) => {
      const { schedules: store } = mine;
      await store.put("test", "a", { cron: "0 * * * *", catchUp: "all" });
      clock.advance(3 * hour);
      let failing = monday + 2 * hour;
      const told: unknown[] = [];
      const running = store.run(
        {
          *test(due) {
            yield* noteInstant(due);
            if (due.instant === failing) throw new Error("Not now.");
          },
        },
        { onError: (error) => told.push((error as Error).message) },
      );
      await mine.quiet();
      expect(await fired(mine)).toEqual([monday + hour]);
      expect(await store.get("test", "a")).toMatchObject({
        nextAt: monday + 2 * hour,
        failures: 1,
      });
      failing = 0;
      clock.advance(1_000);
      await mine.quiet();
      await running.close();
      expect(told).toEqual(["Not now."]);
      expect(await fired(mine)).toEqual([1, 2, 3].map((hours) => monday + hours * hour));
    }),
  );

  test("a scheduler ends with its database, and tells of a failure of the database itself", () =>
    withPlace(backend, async (place) => {
      const clock = countingClock(monday);
      const database = await place.open({ clock });
      const faults = new Faults(database);
      await schedules(database).put("test", "a", { every: "1h" });
      const told: unknown[] = [];
      const running = schedules(faults.database).run(
        { test: noteInstant },
        { onError: (error) => told.push((error as Error).message) },
      );
      await until(() => clock.sleepers === 1);
      // Neither the instant nor its failure can be written down.
      faults.failure = new Error("No database.");
      clock.advance(hour);
      await until(() => told.length === 2 && clock.sleepers === 1);
      expect(told).toEqual(["No database.", "No database."]);
      await database.close();
      clock.advance(hour);
      await running.stopped;
      expect(clock.sleepers).toBe(0);
    }));
}
