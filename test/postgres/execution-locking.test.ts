import { expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { executions } from "../../src/executions.ts";
import { holder } from "../fixtures/execution-parts.ts";
import { Barrier } from "./barrier.ts";
import { withPlace } from "./place.ts";

const names = ["f1", "f2", "f3", "f4", "f5"];
const terms = { holder, lease: 1_000 };

test("a lock keeps from others only what it takes, however many functions it serves", () =>
  withPlace(async (place) => {
    const database = await place.open();
    const clock = manualClock(1_000);
    const store = executions(database, { clock });
    for (let n = 0; n < 20; n += 1)
      await store.create({
        id: `e${n + 10}`,
        function: names[n % names.length] ?? "",
      });
    const barrier = await Barrier.raise(place);
    const all = { ...terms, functions: names, limit: 4 };
    const take = store.lockPending.prepare(all);
    const first = database.write(
      "first",
      function* () {
        const outcome = yield* take();
        yield* barrier.stop();
        return outcome.locked.map(({ id }) => id);
      },
      { isolation: "readCommitted" },
    );
    await barrier.stopped(1);
    const lock = async () => (await store.lockPending(all)).locked.map(({ id }) => id);
    expect(await lock()).toEqual(["e14", "e15", "e16", "e17"]);
    expect(await lock()).toEqual(["e18", "e19", "e20", "e21"]);
    await barrier.lift();
    expect(await first).toEqual(["e10", "e11", "e12", "e13"]);
  }));

test("a run that is paused between being chosen and being locked is not locked", () =>
  withPlace(async (place) => {
    const database = await place.open();
    const store = executions(database, { clock: manualClock(1_000) });
    for (const id of ["chosen", "next"]) await store.create({ id, function: "f1" });
    const barrier = await Barrier.raise(place);
    const take = store.lockPending.prepare({ ...terms, functions: ["f1"], limit: 1 });
    const locking = database.write(
      "locking",
      function* () {
        const body = take();
        let step = body.next();
        for (let hasStopped = false; step.done !== true; step = body.next(yield step.value)) {
          const isLock = JSON.stringify(step.value).includes("SKIP LOCKED");
          if (isLock && !hasStopped) {
            hasStopped = true;
            yield* barrier.stop();
          }
        }
        return step.value.locked.map(({ id }) => id);
      },
      { isolation: "readCommitted" },
    );
    await barrier.stopped(1);
    await store.pause("chosen");
    await barrier.lift();
    expect(await locking).toEqual(["next"]);
  }));

test("workers that name limited functions in different orders never wait for each other in a circle", () =>
  withPlace(async (place) => {
    const database = await place.open();
    const store = executions(database);
    const there = names.map((name) => ({ name, concurrencyMax: 5 }));
    const rounds = [there, there.toReversed(), there, there.toReversed()];
    await Promise.all(
      rounds.map(async (functions, worker) => {
        const run = `Run_01ARZ3NDEKTSV4RRFFQ69G5FA${worker}`;
        const executor = `Exr_01ARZ3NDEKTSV4RRFFQ69G5FA${worker}`;
        for (let call = 0; call < 20; call += 1)
          await store.lockPending({
            functions,
            holder: { executor, run } as typeof holder,
            lease: 1_000,
            limit: 1,
          });
      }),
    );
    expect(database.stats().reruns).toBe(0);
  }));
