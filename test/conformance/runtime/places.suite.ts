import { describe, expect, test } from "vitest";
import {
  signal,
  workflow,
} from "../../../src/runtime/definition/definitions.ts";
import { manualClock, type Clock } from "../../../src/model/time/clock.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { T0 } from "../execution/fixture.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { appends, Meddling } from "./meddling.ts";
import { gate, kindsOf, until } from "./waiting.ts";

const go = signal<string>("go");

/** Which runs of a worker go on, and how often it asks for the time. */
export function runtimePlacesSuite(backend: Backend): void {
  describe("the timers of a run", () => {
    timerTests(backend);
  });
}

/** Long enough for what has begun to come to its rest: nothing else is under way. */
async function rounds(holdfast: Holdfast, id: string): Promise<void> {
  for (let round = 0; round < 20; round += 1) {
    await kindsOf(holdfast, id);
    await turn();
  }
}

/** The event loop comes round. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function timerTests(backend: Backend): void {
  /** Counts the timers for what is over already. */
  function watched(clock: Clock): Clock & { late: number } {
    const seen = {
      late: 0,
      now: () => clock.now(),
      wakeAt(instant: number, run: () => void) {
        if (instant <= clock.now()) seen.late += 1;
        return clock.wakeAt(instant, run);
      },
    };
    return seen;
  }

  const patient = (body: () => Promise<void>) =>
    workflow("patient", async (ctx) => {
      const [sent] = await Promise.all([
        ctx.receive(go, { timeout: 1_000 }),
        ctx.step("long", body),
      ]);
      return sent ?? "nothing";
    });

  test(
    "are not set for what is over while something is being recorded, and it comes afterwards",
    onRuntime(backend, async ({ database, another }) => {
      const manual = manualClock(T0);
      const clock = watched(manual);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const finish = gate();
      const worked = patient(() => finish.opened);
      await holdfast.work([worked], { lease: "1 hour" });
      const done = meddling.holdNext(
        "appendEvents",
        "call",
        appends("stepFinished"),
      );
      const run = await holdfast.start(worked);
      await until(async () =>
        (await kindsOf(holdfast, run.id)).includes("receiveRequested"),
      );
      finish.open();
      await done.reached;
      clock.late = 0;
      manual.advance(1_000);
      await rounds(holdfast, run.id);
      const { late } = clock;
      done.release();
      expect(await run.result()).toBe("nothing");
      expect(late).toBe(0);
    }),
  );

  test(
    "are not set for what is over while a paused run is left, and it comes when that is resumed",
    onRuntime(backend, async ({ another }) => {
      const manual = manualClock(T0);
      const clock = watched(manual);
      const holdfast = await another({ clock });
      const begun = gate();
      const finish = gate();
      const worked = patient(async () => {
        begun.open();
        await finish.opened;
      });
      await holdfast.work([worked], { lease: "1 hour" });
      const run = await holdfast.start(worked);
      await begun.opened;
      await until(async () =>
        (await kindsOf(holdfast, run.id)).includes("receiveRequested"),
      );
      await run.pause();
      // The worker has looked at it.
      await rounds(holdfast, run.id);
      clock.late = 0;
      manual.advance(1_000);
      await rounds(holdfast, run.id);
      const { late } = clock;
      finish.open();
      await until(async () =>
        (await kindsOf(holdfast, run.id)).includes("unlocked"),
      );
      await run.resume();
      expect(await run.result()).toBe("nothing");
      expect(late).toBe(0);
    }),
  );
}
