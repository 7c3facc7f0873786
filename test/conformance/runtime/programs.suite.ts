import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isDeep, seed } from "../../depth.ts";
import { runtimeContext } from "../../../src/open/open-holdfast.ts";
import { definitionOf } from "../../../src/runtime/definitions.ts";
import { loadedWhole } from "../../../src/runtime/history.ts";
import { replayHistory } from "../../../src/runtime/replay-history.ts";
import type { RuntimeEvent } from "../../../src/runtime/runtime-event.ts";
import type { Backend } from "../backend.ts";
import { onRuntime, type RuntimeFixture } from "./fixture.ts";
import {
  disagreement,
  ping,
  programFunctions,
  programs,
  type Traces,
} from "./program.ts";

/** Most rounds in memory: what is replayed is the same everywhere, and waits take no flushes there. */
function roundsOn({ survives }: Backend): number {
  if (isDeep) return survives ? 150 : 1_500;
  return survives ? 8 : 30;
}

export function runtimeProgramsSuite(backend: Backend): void {
  describe("random programs", () => {
    test(
      "[RT1] see the same when they are replayed as when they ran",
      onRuntime(backend, async (fixture) => {
        expect(await disagreements(fixture, 1_000, roundsOn(backend))).toEqual(
          [],
        );
      }),
    );

    test(
      "[RT2] see the same when they are forgotten at every wait",
      onRuntime(backend, async (fixture) => {
        expect(await disagreements(fixture, 0, roundsOn(backend))).toEqual([]);
      }),
    );
  });
}

/** Runs programs; whatever the code of one saw each time it was run must agree, and with a replay of the whole log. */
async function disagreements(
  { holdfast, database, said }: RuntimeFixture,
  hotRunsMax: number,
  numRuns: number,
): Promise<readonly RuntimeEvent[]> {
  const traces: Traces = new Map();
  const { program, all } = programFunctions(traces);
  const context = await runtimeContext(database, {}, () => undefined);
  await holdfast.work(all, { hotRunsMax });
  await fc.assert(
    fc.asyncProperty(programs, async (nodes) => {
      const run = await holdfast.start(program, nodes);
      const signals = [1, 2, 3].map((value) =>
        run.signal(ping, value).catch(() => undefined),
      );
      const seen = await run.result({ timeout: "30s" });
      await Promise.all(signals);
      const locked = await loadedWhole(
        context,
        await holdfast.executions.load(run.id),
      );
      const replayed = await replayHistory(
        context,
        definitionOf(program, "program"),
        locked,
      );
      expect(replayed).toEqual({
        kind: "ends",
        result: { kind: "completed", value: seen },
      });
      const of = traces.get(run.id) ?? [];
      traces.delete(run.id);
      expect(disagreement([...of, seen.split("\n")])).toBeUndefined();
    }),
    { seed, numRuns },
  );
  return said.filter(({ level }) => level === "error");
}
