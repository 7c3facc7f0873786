import { describe, expect, test } from "vitest";
import { Request } from "../../../src/sql/operation.ts";
import { type Tx, sql, rows, run } from "../../../src/kernel.ts";
import { triggers } from "../../../src/triggers.ts";
import { sessions } from "../../../src/sessions.ts";
import { fireOwnSchedule } from "../../../src/stores/schedule/fire.ts";
import { triggerContext } from "../../../src/stores/trigger/context.ts";
import { fireTrigger } from "../../../src/stores/trigger/record.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { hour, inTriggers, monday, processIds, storedTriggers, webhook } from "./fixture.ts";
import type { Side } from "./fixture.ts";

export function triggerAtomicitySuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  describe("an occurrence that fails halfway", () => {
    test(
      "[AX9] at any statement leaves neither itself nor a delivery nor a process; repeated, it starts each once",
      fixture(async ({ mine }) => {
        await subscribed(mine);
        const draft = { key: "o", source: webhook, payload: { n: 1 } };
        const record = mine.triggers.record.prepare(draft);
        const statements = await failingEverywhere(mine, function* () {
          yield* record();
        });
        expect(statements).toBeGreaterThan(10);
        const [delivery, other] = await deliveriesOf(mine, "o");
        expect(await processIds(mine)).toEqual([delivery, other]);
      }),
    );

    test(
      "[AX9] because a process cannot be read leaves nothing; only what a subscription asks for is refused",
      fixture(async ({ mine }) => {
        const { database, triggers: store, processes } = mine;
        await subscribed(mine);
        const again = { key: "o", source: webhook, payload: { n: 1 } };
        const { deliveries } = await store.record(again);
        for (const { process } of deliveries)
          await processes.complete(process ?? "", {
            kind: "completed",
            value: 1,
          });
        await database.write("damage", function* () {
          yield* run(sql`DELETE FROM holdfast_trigger_delivery`);
          yield* run(sql`DELETE FROM holdfast_trigger_occurrence`);
          yield* run(sql`
            UPDATE holdfast_process SET hash = 'other', parts = 'nonsense'
            WHERE id = ${deliveries[1]?.process ?? ""}`);
        });
        const before = await storedTriggers(mine);
        expect(await rejection(store.record(again))).toMatchObject({
          code: "CORRUPT_ROW",
        });
        expect(await storedTriggers(mine)).toEqual(before);
      }),
    );

    test(
      "[AX9] of a schedule leaves the schedule at that instant too",
      fixture(async ({ mine }) => {
        await subscribed(mine, { cron: "0 * * * *" });
        const context = triggerContext(mine.database, undefined);
        const due = await mine.database.read("due", () =>
          rows<{ readonly key: number; readonly name: string }>(
            sql`SELECT key, name FROM holdfast_schedule ORDER BY key LIMIT 1`,
          ),
        );
        const [{ key, name } = { key: 0, name: "" }] = due;
        const kind = "trigger";
        await failingEverywhere(mine, function* () {
          yield* fireOwnSchedule({
            seen: {
              key,
              name: { kind, name },
              revision: 1,
              nextAt: monday + hour,
            },
            instant: monday + hour,
            skipped: undefined,
            following: monday + 2 * hour,
            at: monday + hour,
            fire: (each) => fireTrigger(context, each),
          });
        });
        expect(await processIds(mine)).toHaveLength(1);
        expect(await mine.schedules.get(kind, name)).toMatchObject({
          nextAt: monday + 2 * hour,
        });
      }),
    );
  });

  test("[A85] subscriptions, occurrences and their deliveries survive a reopening; a new key delivers again", () =>
    withPlace(backend, async (place) => {
      const first = await place.open();
      await sessions(first).create("s1");
      await triggers(first).subscribe({
        key: "first",
        registrant: "s1",
        source: webhook,
        target: { kind: "build" },
      });
      const recorded = await triggers(first).record({
        key: "o",
        source: webhook,
      });
      if (backend.survives) await first.close();
      const database = backend.survives ? await place.open() : first;
      const again = triggers(database);
      expect(await again.list()).toMatchObject({
        items: [
          {
            key: "first",
            registrant: { id: "s1", generation: 1 },
            revision: 1,
          },
        ],
      });
      expect(await again.record({ key: "o", source: webhook })).toEqual({
        ...recorded,
        kind: "replayed",
      });
      const next = await again.record({ key: "p", source: webhook });
      expect(next.kind).toBe("recorded");
      expect(next.deliveries).toHaveLength(1);
      expect(next.deliveries[0]?.process).not.toBe(recorded.deliveries[0]?.process);
    }));
}

async function subscribed(
  { triggers: store, sessions: sessionStore }: Side,
  source: { readonly cron: string } | typeof webhook = webhook,
): Promise<void> {
  await sessionStore.create("s1");
  const target = { kind: "build", wakeTarget: "s1" };
  await store.subscribe({ key: "a", registrant: "s1", source, target });
  await store.subscribe({ key: "b", source, target });
}

async function deliveriesOf(
  { triggers: store }: Side,
  key: string,
): Promise<readonly (string | null)[]> {
  const { deliveries } = await store.occurrence(key);
  return deliveries.map(({ process }) => process);
}

/** Runs a body that fails at its first statement, then at its second, and so on, until it does not; tells how many it has. */
async function failingEverywhere(side: Side, body: () => Tx<void>): Promise<number> {
  const before = await storedTriggers(side);
  for (let at = 1; ; at += 1) {
    const outcome = side.database.write("failing", () => failingAt(at, body), {
      isolation: "readCommitted",
    });
    const isWhole = await outcome.catch(() => false);
    if (isWhole) return at - 1;
    expect((await rejection(outcome)).message).toBe("It fails here.");
    expect(await storedTriggers(side)).toEqual(before);
  }
}

function* failingAt(at: number, body: () => Tx<void>): Tx<boolean> {
  const running = body();
  let step = running.next();
  for (let statements = 0; step.done !== true;) {
    const { value: request } = step;
    if (request instanceof Request && request.statement !== undefined) statements += 1;
    if (statements === at) step = running.throw(new Error("It fails here."));
    else step = running.next(yield request);
  }
  return true;
}
