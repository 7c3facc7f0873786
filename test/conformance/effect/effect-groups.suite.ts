import { describe, expect, test } from "vitest";
import { sql } from "../../../src/sql/statement.ts";
import type { Statement } from "../../../src/sql/statement.ts";
import { inAwaitFixture, storedAwaits } from "./await/fixture.ts";
import type { AwaitFixture, InFixture } from "./await/fixture.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { pastChecks } from "../past-checks.ts";

export function effectGroupsSuite(backend: Backend): void {
  const fixture = inAwaitFixture(backend);
  describe("a group of effects and await-events", () => {
    borderTests(fixture);
    raceTests(fixture);
    allTests(fixture);
    effectTests(fixture);
    damageTests(fixture);
  });
}

const ab = [{ awaitEvent: "a" }, { awaitEvent: "b" }] as const;

/** Opens await-events, and answers with their tokens. */
async function opened(
  { events, scope }: AwaitFixture,
  ...keys: readonly string[]
): Promise<Readonly<Record<string, string>>> {
  const tokens: Record<string, string> = {};
  for (const key of keys) tokens[key] = (await events.open(scope, key)).token;
  return tokens;
}

function borderTests(fixture: InFixture): void {
  test(
    "is refused by name when its members are none, too many, named twice or no members",
    fixture(async (at) => {
      const { database, groups, scope } = at;
      await opened(at, "a");
      const before = await storedAwaits(database);
      const many = Array.from({ length: 101 }, (_, n) => ({ effect: `${n}` }));
      const wrong: readonly (readonly [unknown, string])[] = [
        [undefined, "members"],
        [null, "members"],
        [{ length: 1, 0: { effect: "a" } }, "members"],
        [[], "members"],
        [many, "members"],
        [[{ effect: "a" }, undefined], "members[1]"],
        [[null], "members[0]"],
        [["a"], "members[0]"],
        [[{}], "members[0]"],
        [[{ effect: " " }], "members[0]"],
        [[{ effect: 5 }], "members[0]"],
        [[{ awaitEvent: "x".repeat(513) }], "members[0]"],
        [[{ effect: "a", awaitEvent: "a" }], "members[0]"],
        [[{ effect: "a" }, { effect: "a" }], "members[1]"],
        [[{ effect: "a", attempt: 2 }], "members[0]"],
        [[{ awaitEvent: "a", attempts: 2 }], "members[0]"],
        [[{ effect: "a", attempts: 0 }], "members[0].attempts"],
        [[{ effect: "a", attempts: "2" }], "members[0].attempts"],
      ];
      for (const [members, path] of wrong)
        for (const kind of ["race", "all"] as const)
          expect(await rejection(groups[kind](scope, "g", members as []))).toMatchObject({
            code: "GROUP_INVALID",
            details: { path },
          });
      expect(await rejection(groups.race(scope, " ", [{ awaitEvent: "a" }]))).toMatchObject({
        code: "EFFECT_INVALID",
        details: { path: "key" },
      });
      expect(await storedAwaits(database)).toEqual(before);
    }),
  );

  test(
    "is opened in a transaction of one's own together with its await-events, or not at all",
    fixture(async ({ database, events, groups, scope }) => {
      const prepared = ["a", "b"].map((key) => events.open.prepare(scope, key));
      const open = groups.open.prepare(scope, "g", "all", ab);
      const all = (fails: boolean): Promise<unknown> =>
        database.write(
          "mine",
          function* () {
            for (const openEvent of prepared) yield* openEvent();
            const group = yield* open();
            if (fails) throw new Error("no");
            return group;
          },
          { isolation: "readCommitted" },
        );
      const before = await storedAwaits(database);
      expect((await rejection(all(true))).message).toBe("no");
      expect(await storedAwaits(database)).toEqual(before);
      expect(await all(false)).toEqual({ existed: false });
      expect(await all(false)).toEqual({ existed: true });
      expect(await rejection(groups.open(scope, "g", "race", ab))).toMatchObject({
        code: "GROUP_CONFLICT",
        details: { path: "kind" },
      });
      expect(await rejection(groups.open(scope, "h", "any" as "all", ab))).toMatchObject({
        code: "GROUP_INVALID",
        details: { path: "kind" },
      });
    }),
  );

  test(
    "is refused with an await-event that is not open, and leaves nothing",
    fixture(async (at) => {
      const { database, groups, scope } = at;
      await opened(at, "a");
      const before = await storedAwaits(database);
      expect(await rejection(groups.race(scope, "g", ab))).toMatchObject({
        code: "AWAIT_EVENT_NOT_FOUND",
        details: { key: "b" },
      });
      expect(await storedAwaits(database)).toEqual(before);
      expect(await rejection(groups.drain(scope, "g"))).toMatchObject({
        code: "GROUP_NOT_FOUND",
      });
    }),
  );

  test(
    "is refused when its key was used for another one, and the difference is named",
    fixture(async (at) => {
      const { database, events, groups, scope } = at;
      const { a = "" } = await opened(at, "a", "b");
      await events.resolve(a, 1);
      await groups.race(scope, "g", ab);
      const before = await storedAwaits(database);
      const [one, two] = ab;
      for (const [attempt, path] of [
        [() => groups.all(scope, "g", ab), "kind"],
        [() => groups.race(scope, "g", [two, one]), "members[0]"],
        [() => groups.race(scope, "g", [one]), "members[1]"],
        [() => groups.race(scope, "g", [one, { effect: "b" }]), "members[1]"],
      ] as const)
        expect(await rejection(attempt())).toMatchObject({
          code: "GROUP_CONFLICT",
          details: { key: "g", path },
        });
      expect(await storedAwaits(database)).toEqual(before);
    }),
  );
}

function raceTests(fixture: InFixture): void {
  test(
    "[A82] a race is won by whoever ended first, and stays so whatever the others do",
    fixture(async (at) => {
      const { events, groups, scope, clock, faults } = at;
      const { a = "", b = "" } = await opened(at, "a", "b");
      const race = groups.race(scope, "g", ab, { timeout: "1 day" });
      await faults.asleep(clock);
      await events.resolve(b, "bee");
      const answer = {
        ordinal: 1,
        member: { awaitEvent: "b" },
        outcome: { kind: "resolved", value: "bee" },
      };
      expect(await race).toEqual(answer);
      // The loser ends later, by a clock that stands earlier.
      clock.set(1);
      await events.resolve(a, "ay");
      const { writes } = faults;
      expect(await groups.race(scope, "g", ab)).toEqual(answer);
      expect(await groups.race(scope, "g", ab, { timeout: 0 })).toEqual(answer);
      expect(faults.writes).toBe(writes);
      expect(await groups.drain(scope, "g")).toEqual([
        answer,
        {
          ordinal: 0,
          member: { awaitEvent: "a" },
          outcome: { kind: "resolved", value: "ay" },
        },
      ]);
    }),
  );

  test(
    "[A82] the order is recorded as members end, also while nobody waits and the clock stands or goes back",
    fixture(async (at) => {
      const { events, groups, scope, clock } = at;
      const { a = "", b = "", c = "" } = await opened(at, "a", "b", "c");
      const abc = [...ab, { awaitEvent: "c" }];
      // Whoever waited has died.
      expect(await rejection(groups.race(scope, "g", abc, { timeout: 0 }))).toMatchObject({
        code: "DEADLINE_EXCEEDED",
      });
      await events.resolve(c, 3);
      clock.set(10);
      await events.resolve(b, 2);
      await events.resolve(a, 1);
      expect(await groups.race(scope, "g", abc)).toMatchObject({ ordinal: 2 });
      const order = (await groups.drain(scope, "g")).map(({ ordinal }) => ordinal);
      expect(order).toEqual([2, 1, 0]);
    }),
  );

  test(
    "[A82] what had ended before the group was opened is in the order of its instants, then of its names",
    fixture(async (at) => {
      const { events, groups, scope, clock } = at;
      const { a = "", b = "", c = "" } = await opened(at, "a", "b", "c");
      await events.resolve(b, 2);
      await events.resolve(a, 1);
      clock.set(999);
      await events.resolve(c, 3);
      const abc = [...ab, { awaitEvent: "c" }];
      expect(await groups.all(scope, "g", abc)).toEqual({
        kind: "all",
        values: [1, 2, 3],
        order: [2, 0, 1],
      });
    }),
  );

  test.each([
    ["failed", { kind: "failed", error: { message: "no" } }],
    ["cancelled", { kind: "cancelled" }],
    ["revoked", { kind: "revoked" }],
    ["timedOut", { kind: "timedOut" }],
  ] as const)("[A82] a race can be won by one that %s", (how, outcome) =>
    fixture(async (at) => {
      const { events, groups, scope, clock } = at;
      const { token } = await events.open(scope, "a", { answerWithin: 50 });
      await opened(at, "b");
      if (how === "failed") await events.fail(token, new Error("no"));
      if (how === "cancelled") await events.cancel(scope, "a");
      if (how === "revoked") await events.revoke(scope, "a");
      if (how === "timedOut") clock.advance(50);
      for (const kind of ["race", "all"] as const)
        expect(await groups[kind](scope, kind, ab)).toMatchObject({
          ordinal: 0,
          member: { awaitEvent: "a" },
          outcome,
        });
    })(),
  );
}

function allTests(fixture: InFixture): void {
  test(
    "[A82] all are answered as they were named, with the order in which they ended",
    fixture(async (at) => {
      const { events, groups, scope, clock, faults } = at;
      const { a = "", b = "" } = await opened(at, "a", "b");
      const all = groups.all(scope, "g", ab, { timeout: "1 day" });
      await faults.asleep(clock);
      await events.resolve(b, "bee");
      await events.resolve(a, "ay");
      const answer = { kind: "all", values: ["ay", "bee"], order: [1, 0] };
      expect(await all).toEqual(answer);
      const { writes } = faults;
      expect(await groups.all(scope, "g", ab)).toEqual(answer);
      expect(faults.writes).toBe(writes);
      expect([clock.sleepers, faults.listeners]).toEqual([0, 0]);
    }),
  );

  test(
    "[A82] all end with the first that does not succeed, and stay so when others fail or succeed later",
    fixture(async (at) => {
      const { events, groups, scope } = at;
      const { a = "", b = "", c = "" } = await opened(at, "a", "b", "c");
      const abc = [...ab, { awaitEvent: "c" }];
      await events.resolve(c, 3);
      await events.cancel(scope, "b");
      const answer = {
        kind: "failed",
        ordinal: 1,
        member: { awaitEvent: "b" },
        outcome: { kind: "cancelled" },
      };
      expect(await groups.all(scope, "g", abc)).toEqual(answer);
      expect(await rejection(groups.drain(scope, "g", { timeout: 0 }))).toMatchObject({
        code: "DEADLINE_EXCEEDED",
      });
      await events.fail(a, new Error("later"));
      expect(await groups.all(scope, "g", abc)).toEqual(answer);
      const drained = await groups.drain(scope, "g");
      expect(drained.map(({ ordinal }) => ordinal)).toEqual([1, 2, 0]);
      expect(await events.resolve(b, 1)).toMatchObject({ kind: "late" });
    }),
  );
}

function effectTests(fixture: InFixture): void {
  const asked = { kind: "call", input: 1 };
  const boom = (message: string): never => {
    throw Object.assign(new Error(message), { transient: true });
  };

  test(
    "[A82] effects and await-events race each other, and effects that finish in reverse order replay so",
    fixture(async (at) => {
      const { effects, groups, scope, clock, faults } = at;
      await opened(at, "approval");
      const members = [{ effect: "slow" }, { awaitEvent: "approval" }, { effect: "fast" }];
      const race = groups.race(scope, "g", members, { timeout: "1 day" });
      await faults.asleep(clock);
      await effects.execute(scope, "fast", asked, () => "f");
      expect(await race).toEqual({
        ordinal: 2,
        member: { effect: "fast" },
        outcome: { kind: "resolved", value: "f" },
      });
      clock.set(5);
      await effects.execute(scope, "slow", asked, () => "s");
      expect(await groups.race(scope, "g", members)).toMatchObject({
        ordinal: 2,
      });
    }),
  );

  test(
    "a transient failure ends an effect only with the last attempt that its retries allow",
    fixture(async (at) => {
      const { effects, groups, scope } = at;
      const once = [{ effect: "e" }];
      const thrice = [{ effect: "e", attempts: 3 }];
      const attempt = (number: number): Promise<unknown> =>
        rejection(
          effects.execute(scope, "e", asked, () => boom(`${number}`), {
            attempt: number,
          }),
        );
      await attempt(1);
      expect(await groups.race(scope, "once", once)).toMatchObject({
        outcome: { kind: "failed", error: { message: "1" } },
      });
      const open = async (): Promise<void> =>
        expect(await rejection(groups.all(scope, "g", thrice, { timeout: 0 }))).toMatchObject({
          code: "DEADLINE_EXCEEDED",
        });
      await open();
      await attempt(2);
      await open();
      await attempt(3);
      expect(await groups.all(scope, "g", thrice)).toMatchObject({
        kind: "failed",
        outcome: { kind: "failed", error: { message: "3" } },
      });
    }),
  );
}

function damageTests(fixture: InFixture): void {
  const meddle = async ({ database }: AwaitFixture, statement: Statement): Promise<void> => {
    await database.write("meddle", () => pastChecks(database, statement));
  };

  test(
    "that cannot be believed is told to who waits and named in lists, and does not keep its members from ending",
    fixture(async (at) => {
      const { events, groups, scope, session } = at;
      const { a = "", b = "" } = await opened(at, "a", "b");
      const waits = { timeout: 0 };
      for (const key of ["kind", "member", "whole", "gap"])
        await rejection(groups.race(scope, key, ab, waits));
      const groupAt = (key: string): Statement =>
        sql`(SELECT key FROM holdfast_effect_group WHERE name = ${key})`;
      await meddle(at, sql`UPDATE holdfast_effect_group SET kind = 'some' WHERE name = 'kind'`);
      await meddle(
        at,
        sql`UPDATE holdfast_effect_group_member SET kind = 'thing'
            WHERE ordinal = 1 AND effect_group = ${groupAt("member")}`,
      );
      await meddle(
        at,
        sql`UPDATE holdfast_effect_group_member SET place = 2, succeeded = 1, settled_at = 1
            WHERE ordinal = 1 AND effect_group = ${groupAt("gap")}`,
      );
      expect(await events.resolve(a, 1)).toEqual({ kind: "accepted" });
      for (const key of ["kind", "member", "gap"])
        expect(
          await rejection(
            key === "kind" ? groups.drain(scope, key, waits) : groups.race(scope, key, ab, waits),
          ),
        ).toMatchObject({ code: "CORRUPT_ROW" });
      expect(await groups.race(scope, "whole", ab)).toMatchObject({
        ordinal: 0,
      });
      const { items, damaged, next } = await groups.list(session);
      expect(items).toEqual([
        {
          scope: { kind: "turn", id: "t1" },
          key: "whole",
          kind: "race",
          openedAt: 1_000,
          members: ab,
          order: [0],
        },
      ]);
      expect(damaged).toHaveLength(3);
      expect(damaged[0]).toEqual({
        table: "holdfast_effect_group",
        key: expect.stringMatching(/^\d+$/),
      });
      expect(next).toBeUndefined();
      // A recorded end without the end it was recorded from.
      await meddle(
        at,
        sql`UPDATE holdfast_effect_group_member SET place = 2, succeeded = 1, settled_at = 1
            WHERE ordinal = 1 AND effect_group = ${groupAt("whole")}`,
      );
      expect(await rejection(groups.drain(scope, "whole"))).toMatchObject({
        code: "CORRUPT_ROW",
        details: { table: "holdfast_effect_group" },
      });
      expect(await events.resolve(b, 2)).toEqual({ kind: "accepted" });
    }),
  );
}
