import { describe, expect, test } from "vitest";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import { pendingWork, placeFreed } from "../../../src/stores/execution/topics.ts";
import { releaseExecution } from "../../../src/stores/execution/timers/release.ts";
import { executionId } from "./awaited-executions.ts";
import type { Backend } from "../backend.ts";
import { attemptFailed, waiting } from "./execution-events.ts";
import { ann, byAnn } from "./fixture.ts";
import { isOpen, waitFixture } from "../wait-fixture.ts";
import type { Fixture } from "../wait-fixture.ts";

const timeout = "1 day";
const functions = [{ name: "f", concurrencyMax: 1 }];

type Ending = (store: Executions, fixture: Fixture) => Promise<unknown>;

const hourMs = 3_600_000;

/** Each makes that "a", locked at version 1, is held no longer. */
const endings: Readonly<Record<string, Ending>> = {
  "has ended": (store) => store.finish("a", 2, { kind: "completed", value: 1 }),
  "is given back for later": (store) =>
    store.unlock("a", 2, { holder: ann, reason: "busy", after: "1h" }),
  "waits, and is not kept in memory": (store, { clock }) =>
    store.append("a", 2, [waiting(0, clock.now())]),
  "waits, and is kept in memory": (store, { clock }) =>
    store.append("a", 2, [waiting(0, clock.now() + hourMs)]),
  "is to be tried again later": (store, { clock }) =>
    store.append("a", 2, [attemptFailed(clock.now() + hourMs)]),
  "is parked": (store) =>
    store.append("a", 2, [{ kind: "parked", code: "STUCK", reason: "why", codeVersion: null }]),
  "is given back by its worker since it was paused": async (store) => {
    await store.pause("a");
    await store.unlock("a", 3, { holder: ann, reason: "paused" });
  },
  "was running when its process died": (_, { database, clock }) =>
    database.write(releaseExecution(executionContext(database)), {
      id: executionId("a"),
      owner: database.owner,
      at: clock.now(),
      random: 0,
    }),
  "has run out of its lease": async (store, { clock }) => {
    clock.advance(1_000);
    await store.expireTimers();
  },
};

export function executionLimitWaitsSuite(backend: Backend): void {
  const fixture = waitFixture(backend);

  async function full({ database, clock }: Fixture): Promise<Executions> {
    const store = executions(database, { clock });
    for (const id of ["a", "b"]) await store.create({ id, function: "f" });
    await store.lockPending({ ...byAnn, functions, limit: 1 });
    return store;
  }

  describe("waiting for work of a function that is at its limit", () => {
    test(
      "sleeps while nothing changes, though something is due",
      fixture(async (around) => {
        const { watched, clock, database } = around;
        const store = await full(around);
        let heard = 0;
        const stop = database.subscribe(
          () => (heard += 1),
          [
            { operation: pendingWork, key: "f" },
            { operation: placeFreed, key: "f" },
          ],
        );
        const abort = new AbortController();
        const wait = store.waitForPending(functions, {
          timeout,
          signal: abort.signal,
        });
        const ended = wait.catch(() => "aborted");
        await watched.asleep();
        for (let second = 0; second < 20; second += 1) {
          clock.advance(1_000);
          expect(await isOpen(ended)).toBe(true);
        }
        stop();
        // Hints of what was done before may still come late, several on a busy server: one look for each.
        expect(watched.reads).toBeLessThan(4 + heard);
        // Who does not say that there is a limit is told at once.
        await store.waitForPending(["f"], { timeout: 0 });
        abort.abort();
        expect(await ended).toBe("aborted");
      }),
    );

    test.each(Object.keys(endings))("ends when what was held %s", (name) =>
      fixture(async (around) => {
        const { watched } = around;
        const store = await full(around);
        const wait = store.waitForPending(functions, { timeout });
        await watched.asleep();
        expect(await isOpen(wait)).toBe(true);
        await endings[name]?.(store, around);
        await wait;
        const { locked } = await store.lockPending({
          ...byAnn,
          functions,
          limit: 9,
        });
        expect(locked.map(({ id }) => id)).toEqual(["b"]);
      })(),
    );

    test(
      "ends when one of a key that has room becomes due, and not before",
      fixture(async ({ database, watched, clock }) => {
        const store = executions(database, { clock });
        const perKey = [{ name: "f", perKeyMax: 1 }];
        for (const id of ["a", "b"]) await store.create({ id, function: "f", concurrencyKey: "k" });
        await store.create({ id: "c", function: "f", startAt: { in: 50 } });
        await store.lockPending({ ...byAnn, functions: perKey, limit: 9 });
        const wait = store.waitForPending(perKey, { timeout });
        await watched.asleep();
        clock.advance(49);
        expect(await isOpen(wait)).toBe(true);
        clock.advance(1);
        await wait;
      }),
    );

    if (backend.survives)
      test(
        "ends when somebody else who has the database open frees a place",
        fixture(async (around) => {
          const { place, watched, clock } = around;
          const store = await full(around);
          const other = executions(await place.open({ clock }), { clock });
          const wait = store.waitForPending(functions, { timeout });
          await watched.asleep();
          expect(await isOpen(wait)).toBe(true);
          await other.finish("a", 2, { kind: "completed", value: 1 });
          await wait;
        }),
      );
  });
}
