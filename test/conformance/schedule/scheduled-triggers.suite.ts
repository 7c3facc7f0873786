import { describe, expect, test } from "vitest";
import { rows, run, sql } from "../../../src/kernel.ts";
import type {
  FiredInstant,
  RecordOccurrenceOutcome,
  SubscriptionDraft,
} from "../../../src/triggers.ts";
import { removeOwned } from "../../../src/stores/removal.ts";
import { triggersOwned } from "../../../src/stores/trigger/subscription-row.ts";
import type { Backend } from "../backend.ts";
import {
  hour,
  inTriggers,
  monday,
  processIds,
  storedTriggers,
  termsOf,
} from "../trigger/fixture.ts";
import type { InTriggers, Side, TriggerFixture } from "../trigger/fixture.ts";

const hourly: SubscriptionDraft = {
  key: "hourly",
  source: { cron: "0 * * * *" },
  target: { kind: "report" },
};

export function scheduledTriggersSuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  describe("a subscription to a schedule", () => {
    firingTests(fixture);
    changeTests(fixture);
  });
  describe("the subscriptions of a session that is deleted", () => {
    removalTests(fixture);
  });
}

/** Runs schedulers on these sides while the clock goes on by these hours, and tells what was fired. */
async function during(
  { clock }: TriggerFixture,
  sides: readonly Side[],
  hours: number,
): Promise<readonly FiredInstant[]> {
  const fired: FiredInstant[] = [];
  const running = sides.map(({ triggers }) =>
    triggers.run({ onFired: (each) => fired.push(each) }),
  );
  for (const side of sides) await side.quiet();
  for (let passed = 0; passed < hours; passed += 1) {
    clock.advance(hour);
    for (const side of sides) await side.quiet();
  }
  for (const each of running) await each.close();
  return fired;
}

function outcomeOf(fired: FiredInstant | undefined): RecordOccurrenceOutcome {
  if (fired === undefined) throw new Error("Nothing was fired.");
  return fired.value as RecordOccurrenceOutcome;
}

async function instantsOf({ triggers }: Side): Promise<readonly number[]> {
  const { items } = await triggers.occurrences();
  return items.map(({ occurredAt }) => (occurredAt - monday) / hour).toReversed();
}

function firingTests(fixture: InTriggers): void {
  test(
    "starts one process for each instant, though two schedulers run",
    fixture(async (at) => {
      const { mine, theirs } = at;
      await mine.sessions.create("s1");
      await mine.triggers.subscribe({ ...hourly, registrant: "s1" });
      const fired = await during(at, [mine, theirs], 3);
      expect(await instantsOf(theirs)).toEqual([1, 2, 3]);
      expect(await processIds(mine)).toHaveLength(3);
      expect(fired).toHaveLength(3);
      const { occurrence, deliveries } = outcomeOf(fired[0]);
      expect(occurrence).toMatchObject({
        source: { type: "schedule" },
        occurredAt: monday + hour,
        recordedAt: monday + hour,
      });
      expect(occurrence.key).toBe(`schedule:${occurrence.source.key}@${monday + hour}`);
      expect(deliveries).toMatchObject([
        { subscription: { key: "hourly", registrant: { id: "s1" } } },
      ]);
      const stored = await theirs.triggers.occurrence(occurrence.key);
      expect(stored.payload).toEqual({ instant: monday + hour, skipped: null });
    }),
  );

  test(
    "tells the process which instants were passed over before it",
    fixture(async (at) => {
      const { mine, clock } = at;
      await mine.triggers.subscribe(hourly);
      clock.advance(4.5 * hour);
      await during(at, [mine], 0);
      const { items } = await mine.triggers.occurrences();
      expect(items.map(({ payload }) => payload)).toEqual([
        {
          instant: monday + 4 * hour,
          skipped: { from: monday + hour, before: monday + 4 * hour },
        },
      ]);
    }),
  );

  test(
    "that makes no sense is named when it is fired, and the schedule goes on",
    fixture(async (at) => {
      const { mine } = at;
      await mine.triggers.subscribe(hourly);
      await mine.database.write("damage", () =>
        run(sql`UPDATE holdfast_trigger_subscription SET content = '[1'`),
      );
      const fired = await during(at, [mine], 2);
      expect(fired.map(({ value }) => (value as RecordOccurrenceOutcome).damaged)).toMatchObject([
        [{ table: "holdfast_trigger_subscription" }],
        [{ table: "holdfast_trigger_subscription" }],
      ]);
    }),
  );
}

function changeTests(fixture: InTriggers): void {
  test(
    "fires nothing while it is disabled, nor what has passed meanwhile",
    fixture(async (at) => {
      const { mine, clock } = at;
      const { triggers } = mine;
      await triggers.subscribe(hourly);
      await during(at, [mine], 1);
      await triggers.disable("hourly");
      await during(at, [mine], 2);
      expect(clock.sleepers).toBe(0);
      await triggers.enable("hourly");
      await during(at, [mine], 1);
      expect(await instantsOf(mine)).toEqual([1, 4]);
    }),
  );

  test(
    "made disabled fires nothing until it is enabled",
    fixture(async (at) => {
      const { mine } = at;
      await mine.triggers.subscribe({ ...hourly, isEnabled: false });
      await during(at, [mine], 1);
      await mine.triggers.enable("hourly");
      await during(at, [mine], 1);
      expect(await instantsOf(mine)).toEqual([2]);
    }),
  );

  test(
    "goes on when only other parts are revised, and begins anew with another schedule",
    fixture(async (at) => {
      const { mine } = at;
      const { triggers, schedules } = mine;
      await triggers.subscribe({ ...hourly, source: { every: "2h" } });
      await at.mine.quiet();
      at.clock.advance(hour);
      const next = async (): Promise<unknown> =>
        (await schedules.list("trigger")).items.map(
          ({ nextAt }) => ((nextAt ?? 0) - monday) / hour,
        );
      await triggers.revise("hourly", {
        source: { every: "2h" },
        target: { kind: "other" },
      });
      expect(await next()).toEqual([2]);
      await triggers.revise("hourly", {
        source: { every: "3h" },
        target: { kind: "other" },
      });
      expect(await next()).toEqual([4]);
      await triggers.revise("hourly", {
        source: { type: "webhook", key: "github" },
        target: { kind: "other" },
      });
      expect(await next()).toEqual([]);
      await triggers.revise("hourly", termsOf(hourly));
      expect(await next()).toEqual([2]);
      await triggers.delete("hourly");
      expect(await next()).toEqual([]);
      await triggers.subscribe(hourly);
      expect(await next()).toEqual([2]);
    }),
  );
}

function removalTests(fixture: InTriggers): void {
  test.each([500, 1])(
    "end with it, with their schedules, deliveries and instants, %i rows at a time; others' stay",
    (rowsPerSlice) =>
      fixture(async (at) => {
        const { mine } = at;
        const { triggers, sessions } = mine;
        await sessions.create("keeps");
        const kept = { ...hourly, registrant: "keeps" };
        await triggers.subscribe(kept);
        await triggers.subscribe({
          ...kept,
          key: "hook",
          source: { type: "webhook", key: "github" },
        });
        const before = await withoutDeliveries(mine);
        await sessions.create("goes");
        const going = { ...hourly, registrant: "goes" };
        for (const key of ["a", "b", "c"]) await triggers.subscribe({ ...going, key });
        const source = { type: "webhook", key: "github" };
        await triggers.subscribe({ ...going, key: "hook", source });
        await triggers.delete({ registrant: "goes", key: "c" });
        await triggers.record({ key: "o", source });
        await during(at, [mine], 2);
        await sessions.delete("goes", { rowsPerSlice });
        expect(await withoutDeliveries(mine)).toEqual(before);
        // What happened is everybody's; what it started for others stays.
        expect((await triggers.occurrence("o")).deliveries).toHaveLength(1);
        expect(await instantsOf(mine)).toEqual([0, 1, 2]);
        // A scheduler has nothing to do with it any more.
        const fired = await during(at, [mine], 1);
        expect(fired).toHaveLength(1);
      })(),
  );

  /** Subscriptions and the names of schedules. */
  async function withoutDeliveries({ triggers, schedules }: Side): Promise<unknown> {
    const { items } = await triggers.list();
    const { items: scheduled } = await schedules.list("trigger");
    return [items, scheduled.map(({ name }) => name)];
  }

  test(
    "lose their schedules first, so that nothing is recorded while the rest is removed",
    fixture(async (at) => {
      const { mine } = at;
      await mine.sessions.create("s1");
      await mine.triggers.subscribe({ ...hourly, registrant: "s1" });
      await during(at, [mine], 2);
      const removed = await mine.database.write("slice", function* () {
        const [found] = yield* rows<{ readonly key: number }>(
          sql`SELECT key FROM holdfast_session WHERE id = 's1'`,
        );
        return yield* removeOwned(triggersOwned, found?.key ?? 0, 1);
      });
      expect(removed).toBe(1);
      const { items } = await mine.schedules.list("trigger");
      expect(items).toEqual([]);
      expect(await instantsOf(mine)).toEqual([1, 2]);
      expect(await during(at, [mine], 1)).toEqual([]);
    }),
  );

  test(
    "fire no more from the moment of its deletion",
    fixture(async (at) => {
      const { mine } = at;
      await mine.sessions.create("s1");
      await mine.triggers.subscribe({ ...hourly, registrant: "s1" });
      await mine.database.write("delete", () =>
        run(sql`UPDATE holdfast_session SET deleted_at = 1 WHERE id = 's1'`),
      );
      await during(at, [mine], 2);
      expect(await processIds(mine)).toEqual([]);
      await mine.sessions.reclaim();
      const [scheduled, subscribed] = (await storedTriggers(mine)) as unknown[];
      expect([scheduled, subscribed]).toEqual([[], []]);
    }),
  );
}
