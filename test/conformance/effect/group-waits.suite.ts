import { describe, expect, test } from "vitest";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { elsewhere, inAwaitFixture } from "./await/fixture.ts";
import type { AwaitFixture, InFixture } from "./await/fixture.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { until } from "../lease/leased-sessions.ts";
import { isOpen } from "../wait-fixture.ts";

const timeout = "1 day";
const ab = [{ awaitEvent: "a" }, { awaitEvent: "b" }] as const;

export function effectGroupWaitsSuite(backend: Backend): void {
  const fixture = inAwaitFixture(backend);
  describe("waiting for a group", () => {
    waitTests(fixture);
    crashTests(fixture);
    if (backend.survives) elsewhereTests(fixture);
  });
}

async function racing({
  groups,
  scope,
  clock,
  faults,
}: AwaitFixture): Promise<{ readonly race: ReturnType<typeof groups.race> }> {
  const race = groups.race(scope, "g", ab, { timeout });
  race.catch(() => undefined);
  await faults.asleep(clock);
  expect(await isOpen(race)).toBe(true);
  return { race };
}

function waitTests(fixture: InFixture): void {
  test(
    "sleeps exactly until the first of its members times out",
    fixture(async (at) => {
      const { events, scope, clock, faults } = at;
      await events.open(scope, "a", { answerWithin: 500 });
      await events.open(scope, "b", { answerWithin: 300 });
      const { race } = await racing(at);
      const { writes } = faults;
      clock.advance(299);
      expect(await isOpen(race)).toBe(true);
      expect(faults.writes).toBe(writes);
      clock.advance(1);
      expect(await race).toMatchObject({
        ordinal: 1,
        outcome: { kind: "timedOut" },
      });
      expect(clock.sleepers).toBe(0);
    }),
  );

  test(
    "puts those whose time was over in the order of their instants, however late it looks",
    fixture(async (at) => {
      const { events, groups, scope, clock } = at;
      await events.open(scope, "a", { answerWithin: 500 });
      await events.open(scope, "b", { answerWithin: 300 });
      clock.advance(10_000);
      expect(await groups.race(scope, "g", ab)).toMatchObject({ ordinal: 1 });
    }),
  );

  test(
    "shows the same order in every group of the same members, whichever noticed first that their time was over",
    fixture(async (at) => {
      const { events, groups, scope, clock, session } = at;
      await events.open(scope, "a", { answerWithin: 500 });
      await events.open(scope, "b", { answerWithin: 300 });
      await events.open(scope, "c");
      const abc = [...ab, { awaitEvent: "c" }];
      await rejection(groups.all(scope, "before", abc, { timeout: 0 }));
      clock.advance(10_000);
      await groups.race(scope, "after", abc);
      const orders = async (): Promise<readonly unknown[]> =>
        (await groups.list(session)).items.map(({ order }) => order);
      expect(await orders()).toEqual([
        [1, 0],
        [1, 0],
      ]);
      expect(await events.revokeAll(session)).toEqual({ revoked: 3 });
      expect(await orders()).toEqual([
        [1, 0, 2],
        [1, 0, 2],
      ]);
    }),
  );

  test(
    "is not won by who ends after the time of another was over, also when nobody had noticed that",
    fixture(async (at) => {
      const { events, groups, scope, clock } = at;
      const later = { ...scope, id: "t2" };
      const tokens: string[] = [];
      for (const where of [scope, later]) {
        await events.open(where, "a", { answerWithin: 300 });
        tokens.push((await events.open(where, "b")).token);
      }
      await rejection(groups.race(scope, "g", ab, { timeout: 0 }));
      clock.advance(5_000);
      for (const token of tokens)
        expect(await events.resolve(token, "late")).toEqual({
          kind: "accepted",
        });
      const timedOut = { ordinal: 0, outcome: { kind: "timedOut" } };
      expect(await groups.race(later, "g", ab)).toMatchObject(timedOut);
      // Recorded with the answer to the other, whatever the clock says now.
      clock.set(1_000);
      expect(await groups.race(scope, "g", ab)).toMatchObject(timedOut);
      expect(await events.get(scope, "a")).toMatchObject({
        state: "timedOut",
        settledAt: 1_300,
      });
    }),
  );

  test(
    "ends with an effect that is done and recorded in one go, of which nobody had heard before",
    fixture(async (at) => {
      const { effects, groups, scope, clock, faults } = at;
      const race = groups.race(scope, "g", [{ effect: "e" }], { timeout });
      await faults.asleep(clock);
      await effects.execute(scope, "other", { kind: "k", input: 1 }, () => 1);
      expect(await isOpen(race)).toBe(true);
      await effects.transact(scope, "e", { kind: "k", input: 1 }, function* () {
        yield* run(sql`DELETE FROM holdfast_tick WHERE 1 = 0`);
        return "done";
      });
      expect(await race).toMatchObject({ outcome: { value: "done" } });
    }),
  );

  test(
    "can be given up, and ends when its session is deleted",
    fixture(async (at) => {
      const { events, groups, scope, clock, store, session, faults } = at;
      await events.open(scope, "a");
      await events.open(scope, "b");
      const controller = new AbortController();
      const { signal } = controller;
      const aborted = rejection(groups.race(scope, "g", ab, { signal }));
      await until(() => faults.listeners === 1);
      controller.abort();
      expect(await aborted).toMatchObject({ code: "ABORTED" });
      const late = rejection(groups.race(scope, "g", ab, { timeout: 10 }));
      await faults.asleep(clock);
      clock.advance(10);
      const error = await late;
      expect(error).toMatchObject({ code: "DEADLINE_EXCEEDED" });
      expect(error.message).toContain('group "g" of turn "t1"');
      const { race } = await racing(at);
      await store.delete(session);
      expect(await rejection(race)).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
      expect([clock.sleepers, faults.listeners]).toEqual([0, 0]);
    }),
  );
}

function crashTests(fixture: InFixture): void {
  test(
    "may be asked again when an answer was lost between the end of a member and that of the group",
    fixture(async (at) => {
      const { events, groups, effects, scope, faults } = at;
      const { token } = await events.open(scope, "a");
      const members = [{ awaitEvent: "a" }, { effect: "e" }] as const;
      // Of opening it.
      faults.losesAnswer = true;
      expect(await rejection(groups.race(scope, "g", members))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      // The effect ends, and nobody has recorded its place yet.
      await effects.execute(scope, "e", { kind: "k", input: 1 }, () => "e");
      faults.losesAnswer = true;
      expect(await rejection(groups.race(scope, "g", members))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      // Recorded all the same: who ends now is second.
      await events.resolve(token, 1);
      expect(await groups.race(scope, "g", members)).toMatchObject({
        ordinal: 1,
        outcome: { value: "e" },
      });
    }),
  );

  test(
    "an effect that ended unrecorded comes before an await-event that ends later",
    fixture(async (at) => {
      const { events, groups, effects, scope, clock } = at;
      const { token } = await events.open(scope, "a");
      const members = [{ awaitEvent: "a" }, { effect: "e" }] as const;
      await rejection(groups.race(scope, "g", members, { timeout: 0 }));
      await effects.execute(scope, "e", { kind: "k", input: 1 }, () => "e");
      clock.advance(1);
      await events.resolve(token, 1);
      expect(await groups.race(scope, "g", members)).toMatchObject({
        ordinal: 1,
      });
    }),
  );
}

function elsewhereTests(fixture: InFixture): void {
  test(
    "ends when another process ends a member, and both get the same answer",
    fixture(async (at) => {
      const theirs = await elsewhere(at);
      const { token: a } = await at.events.open(at.scope, "a");
      const { token: b } = await at.events.open(at.scope, "b");
      const { race } = await racing(at);
      await Promise.all([theirs.events.resolve(a, "a"), at.events.resolve(b, "b")]);
      const answer = await race;
      expect(await theirs.groups.race(at.scope, "g", ab)).toEqual(answer);
      expect(await at.groups.race(at.scope, "g", ab)).toEqual(answer);
      expect(at.database.stats().polls).toBe(0);
    }),
  );

  test(
    "is decided once when two processes open it and end its members at once",
    fixture(async (at) => {
      const theirs = await elsewhere(at);
      for (let round = 0; round < 5; round += 1) {
        const scope = { ...at.scope, id: `t${round}` };
        const { token: a } = await at.events.open(scope, "a");
        const { token: b } = await at.events.open(scope, "b");
        const [ours, other] = await Promise.all([
          at.groups.race(scope, "g", ab),
          theirs.groups.race(scope, "g", ab),
          at.events.resolve(a, round),
          theirs.events.resolve(b, round),
        ]);
        expect(ours).toEqual(other);
        const drained = await theirs.groups.drain(scope, "g");
        expect(drained[0]).toEqual(ours);
        expect(drained).toHaveLength(2);
      }
    }),
  );
}
