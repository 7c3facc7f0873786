import { expect, test } from "vitest";
import { isDeep, seed, seededRandom } from "../../depth.ts";
import type { Backend } from "../backend.ts";
import { countingClock } from "../wait-fixture.ts";
import { fired, hour, inTriggers, monday, noteInstant, side } from "../trigger/fixture.ts";

const day = 24 * hour;

export function scheduleWeekSuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  test(
    "two schedulers whose clocks jump forwards and back through a week fire each instant once",
    fixture(async ({ mine, theirs }) => {
      const random = seededRandom(seed);
      let isUnsteady = true;
      const sides = [mine, theirs].map(({ database }, index) => {
        const clock = countingClock(monday);
        const own = seededRandom(seed + 1 + index);
        // Until its next jump, a clock may also be set back between a look at what is due and the plan made of it.
        const stepBack = (): void => {
          if (isUnsteady && own() < 0.5) clock.set(Math.floor(clock.now() - own() * 12 * hour));
        };
        return { clock, at: monday, ...side(database, clock, stepBack) };
      });
      const all = { catchUp: "all", catchUpMax: 1_000 } as const;
      for (const [name, cron, timeZone] of [
        ["watch", "0 */3 * * *", "UTC"],
        ["daily", "30 2 * * *", "Europe/Berlin"],
        ["weekdays", "0 9,17 * * 1-5", "America/New_York"],
      ] as const)
        await mine.schedules.put("test", name, { cron, timeZone, ...all });
      await mine.schedules.put("test", "interval", { every: "5h", ...all });
      const running = sides.map(({ schedules }) => schedules.run({ test: noteInstant }));
      const steps = isDeep ? 200 : 30;
      for (let step = 0; step < steps; step += 1) {
        const jump = (random() - 0.4) * 2 * (random() < 0.2 ? day : 6 * hour);
        const which = random();
        // Now one of them, now the other, and now both at once.
        const moved = sides.filter((_, index) => (index === 0 ? which < 0.6 : which > 0.4));
        const [first] = moved;
        const next = Math.floor((first?.at ?? monday) + jump);
        for (const each of moved) {
          each.at = Math.min(Math.max(next, monday), monday + 7 * day);
          each.clock.set(each.at);
        }
        for (const { quiet } of moved) await quiet();
      }
      isUnsteady = false;
      for (const { clock, quiet } of sides) {
        clock.set(monday + 7 * day);
        await quiet();
      }
      for (const each of running) await each.close();
      const every = (count: number, from: number, length: number) =>
        Array.from({ length: count }, (_, index) => monday + from + index * length);
      expect(await fired(mine, "watch")).toEqual(every(56, 3 * hour, 3 * hour));
      expect(await fired(mine, "daily")).toEqual(every(7, 1.5 * hour, day));
      expect(await fired(mine, "weekdays")).toEqual(
        every(5, 14 * hour, day).flatMap((nine) => [nine, nine + 8 * hour]),
      );
      expect(await fired(mine, "interval")).toEqual(every(33, 5 * hour, 5 * hour));
    }),
  );
}
