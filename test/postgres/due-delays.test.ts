import { expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { executions } from "../../src/executions.ts";
import { delayRequested, joinSetCreated, step } from "../conformance/execution/execution-events.ts";
import { Barrier, blocked } from "./barrier.ts";
import { until, withPlace } from "./place.ts";

test("[R17] a delay whose execution somebody holds keeps no other from being answered, and is answered after", () =>
  withPlace(async (place) => {
    const database = await place.open();
    const clock = manualClock(1_000);
    const store = executions(database, { clock });
    const ids = ["a", "b", "c", "d"];
    for (const id of ids) {
      await store.create({ id, function: "f" });
      await store.append(id, 1, [
        joinSetCreated("o:1"),
        delayRequested(`Delay_${id}.o:1_1`, 2_000),
      ]);
    }
    const barrier = await Barrier.raise(place);
    const append = store.append.prepare("b", 3, [step("slow")]);
    const held = database.write(
      "held",
      function* () {
        yield* append();
        yield* barrier.stop();
      },
      { isolation: "readCommitted" },
    );
    await barrier.stopped(1);
    clock.set(2_000);
    const expired = store.expireTimers();
    const answered = async (id: string): Promise<number> =>
      (await store.responses(id)).items.length;
    for (const id of ["a", "c", "d"]) await until(async () => (await answered(id)) === 1);
    expect(await answered("b")).toBe(0);
    await barrier.lift();
    await held;
    expect(await expired).toMatchObject({ delays: 4, damaged: [] });
    expect(await answered("b")).toBe(1);
  }));

test("[R17] delays that several others hold take a call for each of those, not for each delay", () =>
  withPlace(async (place) => {
    const database = await place.open();
    const clock = manualClock(1_000);
    const store = executions(database, { clock });
    const ids = Array.from({ length: 40 }, (_, index) => `run-${index}`);
    await Promise.all(
      ids.map(async (id) => {
        await store.create({ id, function: "f" });
        await store.append(id, 1, [
          joinSetCreated("o:1"),
          delayRequested(`Delay_${id}.o:1_1`, 2_000),
        ]);
      }),
    );
    const holding = async (
      held: readonly string[],
    ): Promise<{ readonly release: () => Promise<unknown> }> => {
      const barrier = await Barrier.raise(place);
      const appends = held.map((id) => store.append.prepare(id, 3, [step("slow")]));
      const written = database.write(
        "held",
        function* () {
          for (const append of appends) yield* append();
          yield* barrier.stop();
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      return { release: () => barrier.lift().then(() => written) };
    };
    const one = await holding(ids.slice(0, 20));
    const other = await holding(ids.slice(20));
    clock.set(2_000);
    const { calls } = database.stats();
    const expired = store.expireTimers();
    await blocked({ place });
    await one.release();
    // What the first had is answered before the second is waited for.
    const last = ids[19] ?? "";
    await until(async () => (await store.responses(last)).items.length === 1);
    await other.release();
    expect(await expired).toMatchObject({ delays: 40, damaged: [] });
    // Written by the two holders; then all that is free, one that the first
    // held, the rest of those, one that the second held, the rest.
    expect(database.stats().calls - calls).toBe(2 + 5);
  }));
