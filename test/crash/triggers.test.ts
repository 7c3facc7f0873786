import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { rows, sql } from "../../src/kernel.ts";
import { triggers } from "../../src/triggers.ts";
import { isDeep, seed, seededRandom } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

const hour = 3_600_000;
/** Monday, 5 January 2026, 00:00 UTC. */
const monday = 1_767_571_200_000;
const week = 7 * 24 * hour;

describe("processes that fire one schedule", () => {
  test("fire each instant of a week once, though their clocks jump forwards and back and one of them is killed", () =>
    withFolder(async (folder) => {
      const clock = manualClock(monday);
      const database = await folder.open({ clock });
      await triggers(database).subscribe({
        key: "watch",
        source: { cron: "0 */4 * * *", catchUp: "all", catchUpMax: 1_000 },
        target: { kind: "report" },
      });
      const runner = (at: number): Child => new Child("schedule-runner.ts", [folder.file(), at]);
      const random = seededRandom(seed);
      const runners = [runner(monday), runner(monday)];
      const times = [monday, monday];
      const rounds = isDeep ? 200 : 12;
      for (let round = 0; round < rounds; round += 1) {
        const which = random() < 0.5 ? 0 : 1;
        const jump = (random() - 0.35) * 24 * hour;
        const at = Math.floor((times[which] ?? monday) + jump);
        times[which] = Math.min(Math.max(at, monday), monday + week);
        await told(runners[which], times[which]);
        if (round === rounds / 2) {
          // Without waiting for it: it dies while it fires, or just before.
          const victim = runners[1 - which];
          const later = (times[1 - which] ?? 0) + 12 * hour;
          victim?.tell(String(Math.min(later, monday + week)));
          victim?.kill();
          await victim?.ended;
          runners[1 - which] = runner(times[1 - which] ?? monday);
        }
      }
      for (const each of runners) {
        await told(each, monday + week);
        each.tell("end");
        expect(await each.ended).toBe(0);
        expect(each.errors).toBe("");
      }
      const { items } = await triggers(database).occurrences({ limit: 1_000 });
      const instants = items.map(({ occurredAt }) => occurredAt);
      expect(instants.toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: 42 }, (_, index) => monday + (index + 1) * 4 * hour),
      );
      const started = items.flatMap(({ deliveries }) => deliveries.map(({ process }) => process));
      expect(new Set(started).size).toBe(42);
      const processes = await database.read("processes", () =>
        rows(sql`SELECT id FROM holdfast_process`),
      );
      expect(processes).toHaveLength(42);
    }));
});

/** Sets the clock of a process, and waits until it has dealt with what is due. */
async function told(child: Child | undefined, instant: number): Promise<void> {
  const lines = child?.lines.length ?? 0;
  await child?.reported(1);
  child?.tell(String(instant));
  await child?.until(() => child.lines.slice(lines).includes(`done ${instant}`));
  expect(child?.errors).toBe("");
}
