import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { roundsOn, seed } from "../../depth.ts";
import { runtimeContext } from "../../../src/open/open-holdfast.ts";
import { isHistoryEvent } from "../../../src/model/execution/history-event.ts";
import { definitionOf } from "../../../src/runtime/definition/definitions.ts";
import { Drain, type AfterMicrotasks } from "../../../src/runtime/drain.ts";
import { loadedWhole } from "../../../src/runtime/worker/hot/history.ts";
import { holdfastOver, type Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { replayLog } from "../../../src/runtime/history/replay-log.ts";
import type { Run } from "../../../src/runtime/client/run-handle.ts";
import type { RuntimeContext } from "../../../src/runtime/runtime-context.ts";
import { isToldByResult, type RuntimeEvent } from "../../../src/runtime/runtime-event.ts";
import type { Backend } from "../backend.ts";
import { expectAgreement } from "../sound.ts";
import { onRuntime, type RuntimeFixture } from "./fixture.ts";
import { whenLogStands } from "./log-growth.ts";
import {
  disagreement,
  ping,
  programFunctions,
  tracedIn,
  type Node,
  type Traces,
} from "./program.ts";
import { programs, sequences } from "./random-programs.ts";

/** What is replayed is the same everywhere, and waits take no flushes in memory. */
function programsOn(backend: Backend): number {
  return roundsOn(backend, { deep: 1_000, short: 30, least: 5 });
}

/** Moments at which code may not have come to rest yet. */
const wrongDrains: Readonly<Record<string, AfterMicrotasks>> = {
  "one microtask": (go) => queueMicrotask(go),
  "ten microtasks": (go) => afterMicrotasks(10, go),
  "a tick that was not asked for in a microtask": (go) => process.nextTick(go),
  "no pause at all": (go) => go(),
};

function afterMicrotasks(count: number, go: () => void): void {
  if (count === 0) go();
  else queueMicrotask(() => afterMicrotasks(count - 1, go));
}

export function runtimeProgramsSuite(backend: Backend): void {
  describe("random programs", () => {
    test(
      "[RT1] see the same when they are replayed as when they ran",
      onRuntime(backend, async (fixture) => {
        expect(await agreeing(fixture, 1_000, programsOn(backend))).toEqual([]);
        await expectAgreement(fixture.database);
      }),
    );

    test(
      "[RT2] see the same when they are forgotten at every wait",
      onRuntime(backend, async (fixture) => {
        expect(await agreeing(fixture, 0, programsOn(backend))).toEqual([]);
        await expectAgreement(fixture.database);
      }),
    );

    for (const hotRunsMax of [1_000, 0])
      test(
        `[RT10] see the same when they are cancelled in the middle, and ${hotRunsMax === 0 ? "forgotten" : "kept"} at every wait`,
        onRuntime(backend, async ({ holdfast, database, said }) => {
          const context = await runtimeContext(database, {}, () => undefined);
          const programming = new Programming(holdfast, context, said);
          await programming.work(hotRunsMax);
          await fc.assert(
            fc.asyncProperty(
              programs,
              fc.integer({ min: 1, max: 8 }),
              async (nodes, cancelAfter) => {
                expect(await programming.disagreementOf(nodes, cancelAfter)).toBeUndefined();
              },
            ),
            { seed, numRuns: Math.ceil(programsOn(backend) / 2) },
          );
          expect(alarms(said)).toEqual([]);
          await expectAgreement(database);
        }),
      );

    test(
      "[RT1] [RT10] see the same when many of them share 1 to 3 places, and some are cancelled",
      onRuntime(backend, async ({ database, another, said }) => {
        const context = await runtimeContext(database, {}, () => undefined);
        const crowd = fc.array(fc.tuple(programs, fc.option(fc.integer({ min: 1, max: 8 }))), {
          minLength: 4,
          maxLength: 8,
        });
        const concurrency = fc.integer({ min: 1, max: 3 });
        const hotRunsMax = fc.constantFrom(1_000, 0);
        await fc.assert(
          fc.asyncProperty(crowd, concurrency, hotRunsMax, async (all, places, hot) => {
            const holdfast = await another();
            const programming = new Programming(holdfast, context, said);
            await programming.work(hot, places);
            const found = await Promise.all(
              all.map(([nodes, after]) => programming.disagreementOf(nodes, after ?? undefined)),
            );
            await holdfast.close();
            expect(found.filter((one) => one !== undefined)).toEqual([]);
          }),
          { seed, numRuns: Math.ceil(programsOn(backend) / 8) },
        );
        expect(alarms(said)).toEqual([]);
      }),
    );

    for (const [title, after] of Object.entries(wrongDrains))
      test(
        `[RT3] do not when what comes next is delivered after ${title}`,
        onRuntime(backend, async ({ database }) => {
          const said: RuntimeEvent[] = [];
          const context: RuntimeContext = {
            ...(await runtimeContext(database, {}, (event) => said.push(event))),
            drain: new Drain(after),
          };
          const holdfast = holdfastOver(context, () => Promise.resolve());
          try {
            const programming = new Programming(holdfast, context, said);
            await programming.work(0);
            expect(await programming.firstDisagreement(500)).toBeDefined();
          } finally {
            await holdfast.close({ timeout: 0 });
          }
        }),
      );

    test(
      "[E68] one after the other leave the same log twice, kept or forgotten, and when they run on from all they had",
      onRuntime(backend, async ({ holdfast, another }) => {
        const { program, all } = programFunctions(
          () => () => undefined,
          () => holdfast.executions,
        );
        const numRuns = Math.ceil(programsOn(backend) / 3);
        const samples = fc.sample(sequences, { numRuns, seed });
        const ended = async (
          runs: readonly Run<string>[],
          hotRunsMax: number,
        ): Promise<readonly string[]> => {
          const worker = await another();
          await worker.work(all, { hotRunsMax });
          const results = await Promise.all(runs.map((run) => run.result()));
          await worker.close();
          return results;
        };
        const started = (): Promise<readonly Run<string>[]> =>
          Promise.all(
            samples.map(async (nodes) => {
              const run = await holdfast.start(program, nodes);
              for (const value of [1, 2, 3]) await run.signal(ping, value);
              return run;
            }),
          );
        const hot = await started();
        const results = await ended(hot, 1_000);
        const logs = await Promise.all(hot.map(historyOf));
        const cold = await started();
        await ended(cold, 0);
        expect(await Promise.all(cold.map(historyOf))).toEqual(logs);
        const again = await Promise.all(
          hot.map(async (run) => {
            const { nextVersion } = await holdfast.executions.get(run.id);
            return run.fork(nextVersion - 1);
          }),
        );
        expect(await ended(again, 1_000)).toEqual(results);
        expect(await Promise.all(again.map(historyOf))).toEqual(logs);
      }),
    );
  });
}

/** What the code of a run did, without when, and without the ids that follow from its own. */
async function historyOf(run: Run<string>): Promise<readonly object[]> {
  const { items } = await run.events({ limit: 1_000 });
  return items
    .map(({ event }) => event)
    .filter((event) => isHistoryEvent(event) && event.kind !== "waiting")
    .map((event) =>
      Object.fromEntries(Object.entries(event).filter(([name]) => comparedFields.has(name))),
    );
}

const comparedFields: ReadonlySet<string> = new Set([
  "kind",
  "call",
  "seen",
  "name",
  "function",
  "signal",
  "patch",
  "joinSet",
  "inputHash",
  "outcome",
  "attempt",
]);

/** Runs programs, and compares what they saw each time. */
class Programming {
  readonly #holdfast: Holdfast;
  readonly #context: RuntimeContext;
  readonly #said: readonly RuntimeEvent[];
  readonly #traces: Traces = new Map();
  readonly #functions = programFunctions(tracedIn(this.#traces), () => this.#holdfast.executions);

  constructor(holdfast: Holdfast, context: RuntimeContext, said: readonly RuntimeEvent[]) {
    this.#holdfast = holdfast;
    this.#context = context;
    this.#said = said;
  }

  work(hotRunsMax: number, concurrency = 100): Promise<void> {
    return this.#holdfast.work(this.#functions.all, { hotRunsMax, concurrency });
  }

  /** What the first program saw that did not see the same twice; undefined if all of so many did. */
  async firstDisagreement(numRuns: number): Promise<string | undefined> {
    for (const nodes of fc.sample(programs, { numRuns, seed })) {
      const found = await this.disagreementOf(nodes);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /**
   * Whatever the code of a program saw each time it was run must agree, and
   * with a replay of the whole log. It is cancelled when it has seen so many
   * things, if it is to be.
   */
  async disagreementOf(nodes: readonly Node[], cancelAfter?: number): Promise<string | undefined> {
    const { program } = this.#functions;
    const run = await this.#holdfast.start(program, nodes);
    const cancelling = this.#cancelled(run, cancelAfter);
    const signals = [1, 2, 3].map((value) => run.signal(ping, value).catch(() => undefined));
    const seen = await this.#resultOf(run);
    await Promise.all([...signals, cancelling]);
    if (seen === undefined) return alarms(this.#said)[0]?.message;
    const locked = await loadedWhole(this.#context, await this.#holdfast.executions.load(run.id));
    const replayed = await replayLog(this.#context, definitionOf(program, "program"), locked);
    const of = this.#traces.get(run.id) ?? [];
    this.#traces.delete(run.id);
    const lines = seen.split("\n");
    if (replayed.kind === "differs") return replayed.error.message;
    if (replayed.kind === "matches") return "It did not end.";
    const { result } = replayed;
    if (result === "continued" || result.kind !== "completed")
      return `It ended otherwise: ${JSON.stringify(result)}`;
    return disagreement([...of, lines, String(result.value).split("\n")]);
  }

  /** A program goes on when it is cancelled, as code that cleans up would. */
  async #cancelled(run: Run<string>, cancelAfter: number | undefined): Promise<void> {
    if (cancelAfter === undefined) return;
    const isOver = run.result().then(
      () => true,
      () => true,
    );
    const hasSeen = (): boolean =>
      (this.#traces.get(run.id) ?? []).some(({ length }) => length >= cancelAfter);
    while (!hasSeen()) if (await Promise.race([isOver, shortly()])) return;
    await run.cancel();
  }

  /** Undefined when it was parked, or left where it was. */
  #resultOf(run: Run<string>): Promise<string | undefined> {
    const isGivenUp = new AbortController();
    const looking = setInterval(() => {
      if (alarms(this.#said).length > 0) isGivenUp.abort();
    }, 20);
    let isStuck = false;
    const stopWatching = whenLogStands(this.#context.database, () => {
      isStuck = true;
      isGivenUp.abort();
    });
    return run
      .result({ signal: isGivenUp.signal })
      .catch((error: unknown) => {
        if (isStuck) throw new Error(`${run.id} does not end, and no log grows.`);
        if (isGivenUp.signal.aborted) return undefined;
        throw error;
      })
      .finally(() => {
        clearInterval(looking);
        stopWatching();
      });
  }
}

async function agreeing(
  { holdfast, database, said }: RuntimeFixture,
  hotRunsMax: number,
  numRuns: number,
): Promise<readonly RuntimeEvent[]> {
  const context = await runtimeContext(database, {}, () => undefined);
  const programming = new Programming(holdfast, context, said);
  await programming.work(hotRunsMax);
  await fc.assert(
    fc.asyncProperty(programs, async (nodes) => {
      expect(await programming.disagreementOf(nodes)).toBeUndefined();
    }),
    { seed, numRuns },
  );
  return alarms(said);
}

/**
 * That a run was parked, or awaits something foreign, which no program does. Programs fail so often
 * that reports are left out; a parked run whose report is never ends either.
 */
function alarms(said: readonly RuntimeEvent[]): readonly RuntimeEvent[] {
  return said.filter(
    (event) =>
      (event.level === "error" &&
        !isToldByResult(event) &&
        event.details["kind"] !== "reportsLeftOut") ||
      /something outside ctx|something that is not recorded/.test(event.message),
  );
}

function shortly(): Promise<false> {
  return new Promise((resolve) => setImmediate(() => resolve(false)));
}
