import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import type { FunctionLimits } from "../../../src/stores/execution/lock/limits.ts";
import type { Backend } from "../backend.ts";
import { joinNext, waiting } from "./execution-events.ts";
import { T0, byBob, onExecutions } from "./fixture.ts";

/** How many of a function, and of a key, are held at once. */
export function executionLimitsSuite(backend: Backend): void {
  const take = async (
    store: Executions,
    limit: number,
    max: FunctionLimits,
  ): Promise<readonly string[]> => {
    const { locked } = await store.lockPending({
      ...byBob,
      functions: [{ name: "f", ...max }],
      limit,
    });
    return locked.map(({ id }) => id);
  };

  describe("limits", () => {
    test(
      "of a function at most so many are held at once; one that ends or is given back makes room",
      onExecutions(backend, async ({ store }) => {
        for (const id of ["a", "b", "c", "d"]) await store.create({ id, function: "f" });
        expect(await take(store, 9, { concurrencyMax: 2 })).toEqual(["a", "b"]);
        expect(await take(store, 9, { concurrencyMax: 2 })).toEqual([]);
        await store.finish("a", 2, { kind: "completed", value: 1 });
        expect(await take(store, 9, { concurrencyMax: 2 })).toEqual(["c"]);
        await store.unlock("b", 2, {
          holder: byBob.holder,
          reason: "later",
          after: 50,
        });
        expect(await take(store, 9, { concurrencyMax: 2 })).toEqual(["d"]);
        expect(await take(store, 9, { concurrencyMax: 0 })).toEqual([]);
      }),
    );

    test(
      "of one key at most so many are held; other keys, and none, pass by",
      onExecutions(backend, async ({ store }) => {
        for (const [id, concurrencyKey] of [
          ["a", "x"],
          ["b", "x"],
          ["c", "y"],
          ["e", "x"],
        ] as const)
          await store.create({ id, function: "f", concurrencyKey });
        await store.create({ id: "d", function: "f" });
        await store.create({ id: "f", function: "f" });
        expect(await take(store, 9, { perKeyMax: 1 })).toEqual(["a", "c", "d", "f"]);
        expect(await take(store, 9, { perKeyMax: 1 })).toEqual([]);
        expect(await take(store, 9, { perKeyMax: 2 })).toEqual(["b"]);
        expect(await take(store, 9, { perKeyMax: 3, concurrencyMax: 5 })).toEqual([]);
        expect(await take(store, 9, { perKeyMax: 3, concurrencyMax: 6 })).toEqual(["e"]);
      }),
    );

    test.each([
      ["waits", waiting(0, T0 + 1_000)],
      ["waits until an instant", waiting(0, T0 + 1_000, T0 + 500)],
      ["asks a join set", joinNext("n:x", T0 + 1_000)],
    ] as const)(
      "[R13] one that %s counts against no limit, also while it is kept in memory",
      (_, event) =>
        onExecutions(backend, async ({ store }) => {
          for (const id of ["a", "b"])
            await store.create({ id, function: "f", concurrencyKey: "k" });
          const max = { concurrencyMax: 1, perKeyMax: 1 };
          await take(store, 1, max);
          expect(await take(store, 9, max)).toEqual([]);
          await store.append("a", 2, [event], { fence: byBob.holder });
          expect(await take(store, 9, max)).toEqual(["b"]);
        })(),
    );

    test(
      "a long queue of a full key hides no other key",
      onExecutions(backend, async ({ store }) => {
        await Promise.all(
          Array.from({ length: 1_050 }, (_, n) =>
            store.create({
              id: `a${n}`,
              function: "f",
              concurrencyKey: "full",
            }),
          ),
        );
        await store.create({ id: "z", function: "f", concurrencyKey: "other" });
        expect(await take(store, 9, { perKeyMax: 1 })).toEqual(["a0", "z"]);
      }),
    );

    test(
      "they are counted over all who have the database open, also when they ask at once",
      onExecutions(backend, async ({ store, place, database }) => {
        for (let n = 0; n < 12; n += 1)
          await store.create({
            id: `e${n}`,
            function: "f",
            concurrencyKey: n % 2 === 0 ? "even" : "odd",
          });
        // In memory nobody else can open it; then two stores share it.
        const shared = backend.survives ? await place.open() : database;
        const other = executions(shared, { clock: manualClock(T0) });
        const max = { concurrencyMax: 5, perKeyMax: 3 };
        const rounds = await Promise.all(
          Array.from({ length: 8 }, (_, n) => take(n % 2 === 0 ? store : other, 2, max)),
        );
        const taken = rounds.flat();
        expect(taken).toHaveLength(5);
        expect(new Set(taken).size).toBe(5);
        const even = taken.filter((id) => Number(id.slice(1)) % 2 === 0);
        expect([2, 3]).toContain(even.length);
      }),
    );
    test(
      "a lock says whether a limit kept something due back",
      onExecutions(backend, async ({ store, clock }) => {
        const isLimited = async (limit: number, max: FunctionLimits) => {
          const functions = [{ name: "f", ...max }];
          return (await store.lockPending({ ...byBob, functions, limit })).isLimited;
        };
        expect(await isLimited(9, { concurrencyMax: 0 })).toBe(false);
        for (const id of ["a", "b", "c", "d"])
          await store.create({ id, function: "f", concurrencyKey: "k" });
        expect(await isLimited(1, { concurrencyMax: 2 })).toBe(false);
        expect(await isLimited(9, { concurrencyMax: 2 })).toBe(true);
        expect(await isLimited(9, { concurrencyMax: 2 })).toBe(true);
        expect(await isLimited(9, { perKeyMax: 2 })).toBe(true);
        expect(await isLimited(9, { perKeyMax: 4 })).toBe(false);
        await store.create({ id: "e", function: "f", startAt: { in: 5 } });
        expect(await isLimited(9, { concurrencyMax: 2 })).toBe(false);
        clock.advance(5);
        expect(await isLimited(9, { concurrencyMax: 2 })).toBe(true);
      }),
    );

    test(
      "a function named twice is served once, under the stricter of its limits",
      onExecutions(backend, async ({ store }) => {
        for (const id of ["a", "b", "c", "d", "e", "f"]) await store.create({ id, function: "f" });
        const four = await store.lockPending({
          ...byBob,
          functions: ["f", "f"],
          limit: 4,
        });
        expect(four.locked.map(({ id }) => id)).toEqual(["a", "b", "c", "d"]);
        const fifth = await store.lockPending({
          ...byBob,
          functions: [{ name: "f", concurrencyMax: 5 }, "f"],
          limit: 4,
        });
        expect(fifth.locked.map(({ id }) => id)).toEqual(["e"]);
      }),
    );

    test(
      "those without a key are not hidden by a long queue of a full key",
      onExecutions(backend, async ({ store, clock }) => {
        await queueUp(store, 1_050, () => "full");
        clock.advance(1);
        await store.create({ id: "keyless", function: "f" });
        expect(await take(store, 9, { perKeyMax: 1 })).toEqual(["a1000", "keyless"]);
        expect(await take(store, 9, { perKeyMax: 1 })).toEqual([]);
      }),
    );

    test(
      "among many full keys a free one is found, wherever it is, after a few calls",
      onExecutions(backend, async ({ store, clock }) => {
        const keys = 450;
        await queueUp(store, keys, (n) => `k${1_000 + n}`);
        for (let held = 0; held < keys;) held += (await take(store, 100, { perKeyMax: 1 })).length;
        await queueUp(store, 3 * keys, (n) => `k${1_000 + (n % keys)}`, "b");
        clock.advance(1);
        await store.create({ id: "late", function: "f", concurrencyKey: "zz" });
        const taken = [];
        // Each call looks at 200 keys.
        for (let call = 0; call < 3; call += 1)
          taken.push(...(await take(store, 9, { perKeyMax: 1 })));
        expect(taken).toEqual(["late"]);
      }),
    );

    test(
      "[R13] one that was answered counts once it is locked again, and not before",
      onExecutions(backend, async ({ store, clock }) => {
        for (const id of ["a", "b", "c"]) await store.create({ id, function: "f" });
        await take(store, 1, { concurrencyMax: 1 });
        await store.append("a", 2, [waiting(0, T0 + 500)]);
        await store.signal("a", "go", 1);
        clock.set(T0 + 499);
        expect(await take(store, 9, { concurrencyMax: 1 })).toEqual(["b"]);
        await store.finish("b", 2, { kind: "completed", value: 1 });
        await store.extend("a", 3, byBob);
        expect(await take(store, 9, { concurrencyMax: 1 })).toEqual([]);
      }),
    );
  });
}

async function queueUp(
  store: Executions,
  count: number,
  keyOf: (n: number) => string,
  prefix = "a",
): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, n) =>
      store.create({
        id: `${prefix}${n + 1_000}`,
        function: "f",
        concurrencyKey: keyOf(n),
      }),
    ),
  );
}
