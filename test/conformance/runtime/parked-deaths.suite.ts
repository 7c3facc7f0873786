import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { workflow } from "../../../src/runtime/definition/definitions.ts";
import { T0 } from "../execution/fixture.ts";
import type { Backend } from "../backend.ts";
import { taken } from "./expiry.suite.ts";
import { onRuntime } from "./fixture.ts";
import { Meddling } from "./meddling.ts";
import { until } from "./waiting.ts";

/** Nobody's function: who serves it lets time pass for all. */
const idle = workflow("idle", async () => undefined);
const sick = workflow("sick", async () => undefined);

const told = {
  level: "error",
  source: "runtime",
  message:
    "Run deadly is parked. 5 processes died, or stopped renewing their lock, while they ran it and nothing else, without progress in between. " +
    "Find the cause in its code or its memory use, then unpark it.",
  details: {
    kind: "runParked",
    id: "deadly",
    function: "sick",
    code: "RUN_KEEPS_KILLING_WORKERS",
  },
};

/** Who parks a run that no code of its own can report tells it, once. */
export function parkedDeathsSuite(backend: Backend): void {
  describe("a run that is parked for the deaths of its workers", () => {
    test(
      "is told as an error by the worker that saw its lock run out for the fifth time while it ran alone",
      onRuntime(backend, async ({ another, said }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const errors = (): unknown[] => said.filter(({ level }) => level === "error");
        await holdfast.work([idle]);
        const run = await holdfast.start(sick, undefined, { id: "deadly" });
        for (let death = 1; death <= 8; death += 1) {
          expect(errors()).toEqual([]);
          expect(await taken(holdfast, "sick", null)).toBe("deadly");
          clock.advance(1_000);
          await until(
            async () => (await holdfast.executions.get("deadly")).state.pending.kind === "pending",
          );
          clock.advance(60_000);
        }
        await until(() => errors().length > 0);
        expect(await run.status()).toBe("parked");
        expect(errors()).toEqual([told]);
      }),
    );

    test(
      "is told as an error by the worker that took it from the fifth process that died",
      onRuntime(backend, async ({ database, another, said }) => {
        const clock = manualClock(T0);
        const meddling = new Meddling(database);
        const holdfast = await another({ clock }, meddling.database);
        await holdfast.work([idle]);
        const run = await holdfast.start(sick, undefined, { id: "deadly" });
        meddling.liveness = "dead";
        for (let death = 1; death <= 8; death += 1) {
          expect(await taken(holdfast, "sick", null)).toBe("deadly");
          meddling.tellDeath(database.owner);
          await until(
            async () => (await holdfast.executions.get("deadly")).state.pending.kind === "pending",
          );
          clock.advance(60_000);
        }
        const errors = (): unknown[] => said.filter(({ level }) => level === "error");
        await until(() => errors().length > 0);
        expect(await run.status()).toBe("parked");
        expect(errors()).toEqual([told]);
      }),
    );

    test(
      "is told as an error by a worker that starts when the fifth process has died",
      onRuntime(backend, async ({ database, another, said }) => {
        const clock = manualClock(T0);
        const meddling = new Meddling(database);
        meddling.liveness = "dead";
        const holdfast = await another({ clock }, meddling.database);
        const run = await holdfast.start(sick, undefined, { id: "deadly" });
        for (let death = 1; death <= 8; death += 1) {
          expect(await taken(holdfast, "sick", null)).toBe("deadly");
          if (death < 8) await holdfast.executions.releaseDead();
          clock.advance(death < 8 ? 60_000 : 0);
        }
        await holdfast.work([idle]);
        expect(await run.status()).toBe("parked");
        await until(() => said.some(({ level }) => level === "error"));
        expect(said.filter(({ level }) => level === "error")).toEqual([told]);
      }),
    );
  });
}
