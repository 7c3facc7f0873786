import { readFileSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { expect } from "vitest";
import { isRunFailedError } from "../../src/model/run-failed-error.ts";
import { runtimeContext } from "../../src/open/open-holdfast.ts";
import { definitionOf, workflow } from "../../src/runtime/definition/definitions.ts";
import { loadedWhole } from "../../src/runtime/worker/hot/history.ts";
import { holdfastOver, type Holdfast } from "../../src/runtime/client/holdfast.ts";
import { replayLog } from "../../src/runtime/history/replay-log.ts";
import type { Run } from "../../src/runtime/client/run-handle.ts";
import type { Database } from "../../src/kernel.ts";
import { whenLogStands } from "../conformance/runtime/log-growth.ts";
import { disagreement, ping, programFunctions } from "../conformance/runtime/program.ts";
import { programs } from "../conformance/runtime/random-programs.ts";
import { seed, seededRandom } from "../depth.ts";
import { Child } from "./child.ts";

/** Only its name matters here. */
const guilty = workflow("guilty", async () => undefined);

export interface ProgramKillPlan {
  readonly database: Database;
  /** What a worker process is told of it, and where it notes what programs see. */
  readonly place: string;
  readonly traces: string;
  readonly rounds: number;
  readonly programs: number;
  /** Fewer than five: after that many deaths while it runs alone a run is parked. */
  readonly kills: number;
}

/**
 * Random programs are run by two processes, which kill themselves in the
 * middle of it and are replaced; a third of them is cancelled meanwhile. In
 * every other round a run beside them kills each process that begins it, and a
 * process has 1 to 3 places. What the code of a program saw in each process
 * must agree, with its result and with a replay of its whole log. Tells how
 * many were compared.
 */
export async function programsSurviveKills(plan: ProgramKillPlan): Promise<number> {
  const { database, rounds } = plan;
  let compared = 0;
  const context = await runtimeContext(database, {}, () => undefined);
  const holdfast = holdfastOver(context, () => Promise.resolve());
  const { program } = programFunctions(
    () => () => undefined,
    () => holdfast.executions,
  );
  for (let round = 0; round < rounds; round += 1) {
    writeFileSync(plan.traces, "");
    const sampled = fc.sample(programs, {
      numRuns: plan.programs,
      seed: seed + round,
    });
    const runs = await Promise.all(
      sampled.map(async (nodes) => {
        const run = await holdfast.start(program, nodes);
        for (const value of [1, 2, 3]) await run.signal(ping, value);
        return run;
      }),
    );
    const isLooping = round % 2 === 0;
    const beside = isLooping ? await holdfast.start(guilty) : undefined;
    await runToTheEnd(plan, holdfast, runs, seededRandom(seed + round), beside?.id);
    await beside?.cancel({ force: true });
    const traces = readTraces(plan.traces);
    for (const run of runs) {
      compared += 1;
      const value = await valueOf(run);
      if (value === undefined) continue;
      const locked = await loadedWhole(context, await holdfast.executions.load(run.id));
      const definition = definitionOf(program, "program");
      expect(await replayLog(context, definition, locked)).toEqual({
        kind: "ends",
        result: { kind: "completed", value },
      });
      const passes = [...(traces.get(run.id)?.values() ?? [])];
      expect(disagreement([...passes, value.split("\n")])).toBeUndefined();
    }
  }
  return compared;
}

async function runToTheEnd(
  { database, place, traces, kills, programs: count }: ProgramKillPlan,
  holdfast: Holdfast,
  runs: readonly Run<string>[],
  random: () => number,
  guiltyId: string | undefined,
): Promise<void> {
  let left = kills;
  let isEnded = false;
  let stop = (): void => undefined;
  const lane = async (): Promise<void> => {
    while (!isEnded) {
      const isMortal = left > 0;
      left -= 1;
      // A program sees about ten things.
      const lifetime = isMortal ? 1 + Math.floor(random() * count * 4) : 0;
      const hotRunsMax = random() < 0.5 ? 0 : 1_000;
      const places = guiltyId === undefined ? 100 : 1 + Math.floor(random() * 3);
      const args = [place, traces, lifetime, hotRunsMax, places];
      const child = new Child("program-worker.ts", args);
      try {
        await Promise.race([child.ended, ended]);
      } finally {
        child.kill();
        await child.ended;
      }
      expect(child.failures).toBe("");
    }
  };
  const ended = Promise.race([
    Promise.all(runs.map(valueOf)),
    whenOneIsParked(holdfast, () => isEnded, guiltyId),
    new Promise<never>((_, reject) => {
      stop = whenLogStands(database, () => reject(new Error("No log grows any more.")));
    }),
  ]).finally(() => {
    isEnded = true;
    stop();
  });
  const cancelling = runs
    .filter((_, index) => index % 3 === 0)
    .map(async (run) => {
      await new Promise((resolve) => setTimeout(resolve, random() * 1_000));
      await run.cancel();
    });
  await Promise.all([ended, lane(), lane(), ...cancelling]);
}

/** Programs go on when they are cancelled. One that had not begun has no value. */
async function valueOf(run: Run<string>): Promise<string | undefined> {
  try {
    return await run.result();
  } catch (error) {
    if (isRunFailedError(error) && error.kind === "cancelled") return undefined;
    throw error;
  }
}

/** Rejects when a run but the guilty one has been parked: it would not end by itself. */
async function whenOneIsParked(
  { runs, executions }: Holdfast,
  isEnded: () => boolean,
  guiltyId: string | undefined,
): Promise<void> {
  while (!isEnded()) {
    const { items } = await runs.list({ status: "parked", limit: 2 });
    const parked = items.find(({ id }) => id !== guiltyId);
    if (parked !== undefined) {
      const { event } = await executions.lastEvent(parked.id);
      throw new Error((event as { reason?: string }).reason);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** What the code of each run saw, each time it was run. */
function readTraces(file: string): ReadonlyMap<string, ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, Map<string, string[]>>();
  for (const text of readFileSync(file, "utf8").trim().split("\n")) {
    const [run, pass, line] = JSON.parse(text) as [string, string, string];
    const passes = found.get(run) ?? new Map<string, string[]>();
    found.set(run, passes);
    const lines = passes.get(pass) ?? [];
    passes.set(pass, lines);
    lines.push(line);
  }
  return found;
}
