import { describe, expect, test } from "vitest";
import { sql, type Statement } from "../../../../src/kernel.ts";
import { awaitEvents } from "../../../../src/effects.ts";
import { awaitsOwned } from "../../../../src/stores/effect/await/event-row.ts";
import { removeOwned } from "../../../../src/stores/removal.ts";
import { inAwaitFixture, storedAwaits } from "./fixture.ts";
import type { AwaitFixture, InFixture } from "./fixture.ts";
import { rejection } from "../../backend.ts";
import type { Backend } from "../../backend.ts";
import { pastChecks } from "../../past-checks.ts";

export function awaitListsSuite(backend: Backend): void {
  const fixture = inAwaitFixture(backend);
  describe("await-events of a session", () => {
    listTests(fixture);
    damageTests(fixture);
    deletionTests(fixture);
  });
}

async function meddle(
  { database }: Pick<AwaitFixture, "database">,
  statement: Statement,
): Promise<void> {
  await database.write("meddle", () => pastChecks(database, statement));
}

function listTests(fixture: InFixture): void {
  test(
    "large answers make short pages, and none is passed over",
    fixture(async ({ events, scope, session }) => {
      const keys = Array.from({ length: 25 }, (_, index) => `k${index}`);
      for (const key of keys) {
        const { token } = await events.open(scope, key);
        await events.resolve(token, "x".repeat(60_000));
      }
      const state = "all" as const;
      const first = await events.list(session, { state });
      expect(first.items.length).toBeLessThan(25);
      const after = first.next ?? "";
      const rest = await events.list(session, { state, after });
      expect(rest.next).toBeUndefined();
      const listed = [...first.items, ...rest.items];
      expect(listed.map(({ key }) => key)).toEqual(keys);
    }),
  );

  test(
    "are listed as they were opened, in pages, by scope and state",
    fixture(async ({ events, scope, session, clock }) => {
      const other = { ...scope, kind: "process" };
      const { id, token } = await events.open(scope, "a", { answerWithin: 9 });
      await events.open(other, "b");
      await events.open(scope, "c");
      clock.advance(5);
      await events.resolve(token, { hello: 1 });
      const { items, damaged, next } = await events.list(session, { limit: 2 });
      expect(items).toEqual([
        {
          id,
          scope: { kind: "turn", id: "t1" },
          key: "a",
          state: "resolved",
          openedAt: 1_000,
          dueAt: 1_009,
          settledAt: 1_005,
          revokedAt: null,
          outcome: { kind: "resolved", value: { hello: 1 } },
        },
        {
          id: expect.stringMatching(/^await_/),
          scope: { kind: "process", id: "t1" },
          key: "b",
          state: "open",
          openedAt: 1_000,
          dueAt: null,
          settledAt: null,
          revokedAt: null,
          outcome: undefined,
        },
      ]);
      expect(damaged).toEqual([]);
      const keys = async (options: Parameters<typeof events.list>[1]): Promise<string> =>
        (await events.list(session, options)).items.map(({ key }) => key).join(" ");
      expect(await keys({ after: next ?? "" })).toBe("c");
      expect(await keys({ state: "open" })).toBe("b c");
      expect(await keys({ scope: { kind: "turn", id: "t1" } })).toBe("a c");
      expect(await keys({ scope: { kind: "drain", id: "t1" } })).toBe("");
      expect(
        await rejection(events.list(session, { scope: { kind: " ", id: "t1" } })),
      ).toMatchObject({ code: "EFFECT_SCOPE_INVALID" });
    }),
  );
}

function damageTests(fixture: InFixture): void {
  test(
    "that cannot be read are an error alone and named in lists, and revoking all passes them over",
    fixture(async (at) => {
      const { events, scope, session, database } = at;
      const tokens: string[] = [];
      for (const key of ["state", "half", "value", "error", "well"]) {
        const { token } = await events.open(scope, key);
        tokens.push(token);
        if (key === "value") await events.resolve(token, "secret");
        if (key === "error") await events.fail(token, new Error("secret"));
      }
      const [state = "", half = "", value = "", , well = ""] = tokens;
      await meddle(at, sql`UPDATE holdfast_await_event SET state = 'shut' WHERE name = 'state'`);
      await meddle(at, sql`UPDATE holdfast_await_event SET state = 'resolved' WHERE name = 'half'`);
      await meddle(
        at,
        sql`UPDATE holdfast_await_event SET payload = '{secret' WHERE name = 'value'`,
      );
      await meddle(
        at,
        sql`UPDATE holdfast_await_event SET payload = '"secret"' WHERE name = 'error'`,
      );
      const before = await storedAwaits(database);
      for (const key of ["state", "half", "value", "error"])
        for (const attempt of [
          () => events.get(scope, key),
          () => events.wait(scope, key),
          () => events.cancel(scope, key),
        ]) {
          const error = await rejection(attempt());
          expect(error).toMatchObject({
            code: "CORRUPT_ROW",
            details: {
              table: "holdfast_await_event",
              key: expect.stringMatching(/^await_/),
            },
          });
          expect(error.message).not.toContain("secret");
        }
      for (const token of [state, half, value])
        expect(await rejection(events.resolve(token, 1))).toMatchObject({
          code: "CORRUPT_ROW",
        });
      expect(await rejection(events.open(scope, "state"))).toMatchObject({
        code: "CORRUPT_ROW",
      });
      const { items, damaged } = await events.list(session);
      expect(items.map(({ key }) => key)).toEqual(["well"]);
      expect(damaged).toHaveLength(4);
      expect(damaged[0]).toEqual({
        table: "holdfast_await_event",
        key: state.slice(0, 38),
      });
      expect(await storedAwaits(database)).toEqual(before);
      // Those whose value alone is damaged are revoked too.
      expect(await events.revokeAll(session)).toEqual({ revoked: 3 });
      expect(await rejection(events.resolve(well, 1))).toMatchObject({
        code: "AWAIT_TOKEN_INVALID",
      });
    }),
  );

  test(
    "whose codec has lost its key are named in lists, and told alone",
    fixture(async ({ scope, session, database, clock }) => {
      let isLost = false;
      const refusing = awaitEvents(database, {
        clock,
        payload: {
          name: "lost",
          encode: (text) => text,
          decode(stored) {
            if (isLost) throw new Error("no key");
            return stored;
          },
          hash: "sha256",
        },
      });
      const { token } = await refusing.open(scope, "k");
      await refusing.resolve(token, 1);
      isLost = true;
      expect(await rejection(refusing.wait(scope, "k"))).toMatchObject({
        code: "PAYLOAD_CODEC_FAILED",
      });
      expect(await refusing.list(session)).toMatchObject({
        items: [],
        damaged: [{ table: "holdfast_await_event" }],
      });
    }),
  );
}

function deletionTests(fixture: InFixture): void {
  /** Three await-events, one of them answered. */
  const filled = async ({ events }: AwaitFixture, scope: AwaitFixture["scope"]): Promise<void> => {
    for (const key of ["a", "b", "c"]) {
      const { token } = await events.open(scope, key);
      if (key === "c") await events.resolve(token, "secret");
    }
  };

  test(
    "[A4] [A53] die with it, in slices, and leave those of others and of none alone",
    fixture(async (at) => {
      const { store, session, scope, database } = at;
      const other = `${session} other`;
      await store.create(other);
      await filled(at, { ...scope, session: other });
      await filled(at, { kind: "turn", id: "t1" });
      const kept = await storedAwaits(database);
      await filled(at, scope);
      const slices: number[] = [];
      const report = await store.delete(session, {
        rowsPerSlice: 2,
        onProgress: ({ rows }) => slices.push(rows),
      });
      expect(report.rows).toBe(3);
      expect(slices.length).toBeGreaterThan(1);
      expect(await storedAwaits(database)).toEqual(kept);
      expect(await store.delete(session)).toMatchObject({ rows: 0 });
    }),
  );

  test(
    "[A82] of a scope that is done with can be forgotten: who waits is told, and old tokens are not for the next ones of the same keys",
    fixture(async (at) => {
      const { events, scope, clock, database, faults } = at;
      const other = { ...scope, id: "t2" };
      await filled(at, other);
      const kept = (await storedAwaits(database)).length;
      await filled(at, scope);
      const { token } = await events.open(scope, "a");
      const wait = rejection(events.wait(scope, "a", { timeout: "1 day" }));
      await faults.asleep(clock, 1);
      expect(await events.forget(scope, { rowsPerSlice: 2 })).toEqual({
        rows: 3,
      });
      expect(await wait).toMatchObject({ code: "AWAIT_EVENT_NOT_FOUND" });
      expect(await events.forget(scope)).toEqual({ rows: 0 });
      expect(await storedAwaits(database)).toHaveLength(kept);
      const next = await events.open(scope, "a");
      expect(next.existed).toBe(false);
      expect(await rejection(events.resolve(token, 1))).toMatchObject({
        code: "AWAIT_TOKEN_INVALID",
      });
      expect(await events.resolve(next.token, 1)).toEqual({ kind: "accepted" });
    }),
  );

  test(
    "are forgotten slice by slice, and fewer than asked for means that none is left",
    fixture(async (at) => {
      const { scope, database } = at;
      await filled(at, scope);
      const [first] = (await storedAwaits(database)) as [{ session: number }];
      const slices: number[] = [];
      for (let removed = 2; removed === 2;) {
        removed = await database.write("forget", () => removeOwned(awaitsOwned, first.session, 2));
        slices.push(removed);
      }
      expect(slices).toEqual([2, 1]);
      // The secret stays: it is the database's.
      expect(await storedAwaits(database)).toHaveLength(1);
    }),
  );
}
