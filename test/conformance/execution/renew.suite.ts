import { describe, expect, test } from "vitest";
import type { Backend } from "../backend.ts";
import type { Database } from "../../../src/sql/database.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import { overlaid } from "../../../src/testing/overlaid.ts";
import { rejection } from "../backend.ts";
import { step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  annLater,
  bob,
  byAnn,
  byBob,
  dump,
  kindsOf,
  lockedIds,
  onExecutions,
  refusal,
  standing,
} from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

const lease = { holder: ann, lease: 1_000 };

/** An execution of "f" that ann has locked for a second. */
async function held(
  { store }: ExecutionFixture,
  id: string,
): Promise<{ readonly id: string; readonly key: number }> {
  const { key } = await store.createLocked({ id, function: "f" }, byAnn);
  return { id, key };
}

export function executionRenewSuite(backend: Backend): void {
  describe("renewing leases", () => {
    test(
      "[R13] moves the ends of many at once, without an event, and names those that are lost",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const a = await held(fixture, "a");
        const b = await held(fixture, "b");
        const taken = await held(fixture, "taken");
        const ended = await held(fixture, "ended");
        const given = await held(fixture, "given-back");
        await store.unlock("taken", 2, { holder: ann, reason: "busy" });
        await store.lock("taken", 3, byBob);
        await store.finish("ended", 2, { kind: "completed", value: 1 });
        await store.unlock("given-back", 2, { holder: ann, reason: "busy" });
        const unknown = { id: "unknown", key: 999_999 };
        clock.advance(600);
        expect(await store.renew([a, taken, b, ended, unknown, given], lease)).toEqual({
          lost: ["taken", "ended", "unknown", "given-back"],
        });
        for (const id of ["a", "b"]) {
          expect(await standing(fixture, id)).toMatchObject({
            version: 1,
            pending: { kind: "locked", leaseUntil: T0 + 1_600 },
          });
          expect(await kindsOf(fixture, id)).toBe("created locked");
        }
        expect((await standing(fixture, "taken")).pending).toMatchObject({
          leaseUntil: T0 + 1_000,
        });
        clock.set(T0 + 1_599);
        expect((await store.expireTimers()).locks).toBe(1);
        clock.set(T0 + 1_600);
        expect((await store.expireTimers()).locks).toBe(2);
        expect(await store.renew([a], lease)).toEqual({ lost: ["a"] });
      }),
    );

    test(
      "[R13] that waited for its turn lasts its full lease from then on",
      onExecutions(backend, async (fixture) => {
        const { database, clock } = fixture;
        const a = await held(fixture, "a");
        const busy = overlaid(database, {
          write: (...call: Parameters<Database["write"]>) => {
            clock.advance(400);
            return database.write(...call);
          },
        } as Partial<Database>);
        expect(await executions(busy, { clock }).renew([a], lease)).toEqual({ lost: [] });
        expect((await standing(fixture, "a")).pending).toMatchObject({ leaseUntil: T0 + 1_400 });
      }),
    );

    test.each([
      ["waits", [waiting(0, T0 + 500)], { kind: "blocked" }],
      [
        "waits until an instant before",
        [waiting(0, T0 + 500, T0 + 300)],
        { kind: "pending", dueAt: T0 + 1_400, wakeAt: T0 + 300 },
      ],
      [
        "waits until an instant after",
        [waiting(0, T0 + 500, T0 + 9_000)],
        { kind: "pending", dueAt: T0 + 9_000 },
      ],
    ] as const)(
      "[R13] of what %s in memory moves the instant at which others may take it",
      (_, events, pending) =>
        onExecutions(backend, async (fixture) => {
          const { store, clock } = fixture;
          const a = await held(fixture, "a");
          await store.append("a", 2, events, { fence: ann });
          clock.set(T0 + 400);
          expect(await store.renew([a], lease)).toEqual({ lost: [] });
          expect((await standing(fixture, "a")).pending).toMatchObject({
            ...pending,
            leaseUntil: T0 + 1_400,
          });
          await store.signal("a", "go", 1);
          expect((await standing(fixture, "a")).pending).toMatchObject({
            kind: "pending",
            dueAt: T0 + 1_400,
            leaseUntil: T0 + 1_400,
          });
          clock.set(T0 + 1_000);
          expect(await store.renew([a], lease)).toEqual({ lost: [] });
          clock.set(T0 + 1_999);
          expect(await lockedIds(store, 9, "f")).toEqual([]);
          await store.append("a", 3, [step("goes on")], { fence: ann });
          clock.set(T0 + 2_000);
          expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
          expect(await store.renew([a], lease)).toEqual({ lost: ["a"] });
        })(),
    );

    test(
      "[R13] after it has passed renews what nobody has noticed",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const locked = await held(fixture, "locked");
        const waits = await held(fixture, "waits");
        const due = await held(fixture, "due");
        await store.append("waits", 2, [waiting(0, T0 + 500)], { fence: ann });
        await store.append("due", 2, [waiting(0, T0 + 500)], { fence: ann });
        await store.signal("due", "go", 1);
        clock.set(T0 + 5_000);
        expect(await store.renew([locked, waits, due], lease)).toEqual({
          lost: [],
        });
        expect((await store.expireTimers()).locks).toBe(0);
        expect(await lockedIds(store, 9, "f")).toEqual([]);
        clock.set(T0 + 6_000);
        expect(await lockedIds(store, 9, "f")).toEqual(["due"]);
      }),
    );

    test(
      "[R13] renews what is paused or being cancelled, and nothing that is parked",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const paused = await held(fixture, "paused");
        const cancelling = await held(fixture, "cancelling");
        const parked = await held(fixture, "parked");
        await store.pause("paused");
        await store.cancel("cancelling");
        await store.append("parked", 2, [
          { kind: "parked", code: "X", reason: "x", codeVersion: null },
        ]);
        clock.advance(500);
        expect(await store.renew([paused, cancelling, parked], lease)).toEqual({
          lost: ["parked"],
        });
        for (const id of ["paused", "cancelling"])
          expect((await standing(fixture, id)).pending).toMatchObject({
            leaseUntil: T0 + 1_500,
          });
      }),
    );

    test(
      "[R13] goes on while children that are renewed end, and tell their parent",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const runs = [await held(fixture, "p")];
        for (let n = 1; n <= 40; n += 1) runs.push(await held(fixture, `p.n:x_${n}`));
        const done = { kind: "completed", value: 1 } as const;
        const ends = runs.slice(1).map(({ id }) => store.finish(id, 2, done, { fence: ann }));
        const renewals = Array.from({ length: 20 }, (_, n) =>
          store.renew(n % 2 === 0 ? runs : runs.toReversed(), lease),
        );
        await Promise.all([...ends, ...renewals]);
        expect((await store.renew(runs, lease)).lost).toEqual(runs.slice(1).map(({ id }) => id));
        expect((await store.responses("p")).items.length).toBe(40);
      }),
    );

    test(
      "[R13] makes no lease shorter, and is not for another executor or run",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const a = await held(fixture, "a");
        const before = await dump(fixture);
        await store.renew([a], { holder: ann, lease: 10 });
        expect(await dump(fixture)).toEqual(before);
        for (const holder of [bob, annLater])
          expect(await store.renew([a], { holder, lease: 5_000 })).toEqual({
            lost: ["a"],
          });
        expect(await store.renew([], lease)).toEqual({ lost: [] });
        // Under its id there may be another one by now.
        expect(await store.renew([{ id: "b", key: a.key }], lease)).toEqual({
          lost: ["b"],
        });
        expect(await refusal(fixture, () => store.renew([a], { ...lease, lease: 0 }))).toBe(
          "LOCK_EXPIRY_INVALID",
        );
        const many = Array.from({ length: 1_001 }, () => a);
        const { code } = await rejection(store.renew(many, lease));
        expect(code).toBe("OPTION_INVALID");
      }),
    );
  });
}
