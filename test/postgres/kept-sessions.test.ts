import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import type { Database } from "../../src/kernel.ts";
import { effects, processEffects } from "../../src/effects.ts";
import { processes } from "../../src/processes.ts";
import { queue, sessions } from "../../src/sessions.ts";
import { isDeep } from "../depth.ts";
import { Barrier, blocked } from "./barrier.ts";
import { withPlace } from "./place.ts";
import type { Place } from "./place.ts";

interface Fixture {
  readonly place: Place;
  readonly barrier: Barrier;
  readonly database: Database;
}

/** A database with the sessions "a" and "b". */
function fixture(body: (fixture: Fixture) => Promise<void>): () => Promise<void> {
  return () =>
    withPlace(async (place) => {
      const database = await place.open({ clock: manualClock(1_000) });
      for (const id of ["a", "b"]) await sessions(database).create(id);
      await body({ place, database, barrier: await Barrier.raise(place) });
    });
}

const both = [
  ["a", "b"],
  ["b", "a"],
] as const;
const rounds = isDeep ? 100 : 10;

/** Rows are locked on Postgres only: on SQLite one waits for the other before it begins. */
describe("two transactions that concern the same sessions in opposite order", () => {
  test(
    "record effects of one session after work for the other, and neither waits",
    fixture(async ({ barrier, database }) => {
      const store = effects(database);
      const done = both.map(([own, other]) => {
        const items = [{ kind: "told", payload: 1 }];
        const told = queue(database).enqueue.prepare(other, { items });
        return store.transact(
          { kind: "turn", session: own, id: "t" },
          "k",
          { kind: "tell", input: other },
          function* () {
            yield* told();
            yield* barrier.stop();
          },
          { isolation: "readCommitted" },
        );
      });
      await barrier.stopped(2);
      await barrier.lift();
      await Promise.all(done);
      expect(database.stats().reruns).toBe(0);
    }),
  );

  test(
    "grant handles to both, and neither waits",
    fixture(async ({ barrier, database }) => {
      const store = processes(database);
      for (const [id] of both) await store.register({ id, kind: "k" });
      const done = both.map(([first, second]) =>
        database.write(
          "grants",
          function* () {
            yield* store.grant.prepare(first, first)();
            yield* barrier.stop();
            yield* store.grant.prepare(first, second)();
          },
          { isolation: "readCommitted" },
        ),
      );
      await barrier.stopped(2);
      await barrier.lift();
      await Promise.all(done);
      expect(database.stats().reruns).toBe(0);
      for (const [id] of both) expect((await store.grants(id)).items).toHaveLength(2);
    }),
  );

  test(
    "many of them that start, signal and spawn are all done at the first attempt",
    fixture(async ({ database }) => {
      const store = processes(database);
      const commands = processEffects(database);
      const eventTypes = [{ name: "signal.go", wake: { input: { kind: "payload" } } }] as const;
      for (const [id] of both) await store.register({ id, kind: "k", wakeTarget: id, eventTypes });
      for (let round = 0; round < rounds; round += 1)
        await Promise.all(
          both.flatMap(([own, other]) => {
            const scope = { kind: "turn", session: own, id: `t${round}` };
            const id = `${own}${round}`;
            return [
              commands.signal(scope, other, "go", "hi", { key: id }),
              commands.start(
                scope,
                { id: `started-${id}`, kind: "k", wakeTarget: own },
                { grant: other },
              ),
              store.spawn({
                id: `spawned-${id}`,
                kind: "k",
                wakeTarget: own,
                execution: { function: "ci/build" },
                grants: [{ scope: own }, { scope: other }],
              }),
            ];
          }),
        );
      expect(database.stats().reruns).toBe(0);
    }),
  );
});

describe("a session that is deleted", () => {
  test(
    "waits for a process that is registered to wake it, and clears its wake target",
    fixture(async ({ place, barrier, database }) => {
      const draft = { id: "p", kind: "k", wakeTarget: "a" };
      const register = processes(database).register.prepare(draft);
      const registered = database.write(
        "register",
        function* () {
          yield* register();
          yield* barrier.stop();
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const deleted = sessions(database).delete("a");
      await blocked({ place });
      await barrier.lift();
      await Promise.all([registered, deleted]);
      expect(await processes(database).get("p")).toMatchObject({
        wakeTarget: null,
      });
    }),
  );

  test(
    "waits for a handle that is granted to it, and takes it along",
    fixture(async ({ place, barrier, database }) => {
      const store = processes(database);
      await store.register({ id: "p", kind: "k" });
      const kept = database.write(
        "grant",
        function* () {
          yield* store.grant.prepare("p", "a")();
          yield* barrier.stop();
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const deleted = sessions(database).delete("a");
      await blocked({ place });
      await barrier.lift();
      await Promise.all([kept, deleted]);
      expect((await store.grants("p")).items).toEqual([]);
    }),
  );
});
