import type { Executions } from "../../src/stores/execution/executions.ts";
import type { GivenEvent } from "../../src/model/execution/given-event.ts";
import { holder } from "../../test/fixtures/execution-parts.ts";

/** An execution that a caller of the load appends to. */
export interface Target {
  readonly id: string;
  readonly key: number;
  nextVersion: number;
}

/** What a step that returned a small text leaves in the log. */
export const stepEvent: GivenEvent = {
  kind: "stepFinished",
  call: 7,
  seen: 0,
  name: "charge the card",
  outcome: "completed",
  value: "x".repeat(80),
};

/** Creates and locks executions, one for each caller. */
export async function lockedTargets(
  log: Executions,
  count: number,
  prefix = "bench",
): Promise<Target[]> {
  const outcomes = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      log.createLocked(
        { id: `${prefix}-${index}`, function: "bench/steps", input: null },
        { holder, lease: "1 hour" },
      ),
    ),
  );
  return outcomes.map(({ id, key, nextVersion }) => ({ id, key, nextVersion }));
}

/** Appends a step to a target and answers with what the store does. */
export type AppendStep = (target: Target) => Promise<{ readonly nextVersion: number }>;

/** As the runtime does: by key, as the run that holds the lock. */
export function throughStore(log: Executions): AppendStep {
  return ({ id, key, nextVersion }) =>
    log.append(id, nextVersion, [stepEvent], { key, fence: holder });
}

/** Every caller appends to its own executions, one after the other. Answers with appends per second. */
export async function appendSteps(
  append: AppendStep,
  callers: readonly (readonly Target[])[],
  each: number,
): Promise<number> {
  let appended = 0;
  const startedMs = performance.now();
  await Promise.all(
    callers.map(async (targets) => {
      for (let count = 0; count < each; count += 1)
        for (const target of targets) {
          ({ nextVersion: target.nextVersion } = await append(target));
          appended += 1;
        }
    }),
  );
  return (appended * 1_000) / (performance.now() - startedMs);
}
