import { isPassing } from "../failures.ts";
import {
  removeFinished,
  type RetentionPolicy,
  type SweptPlaces,
} from "../../stores/execution/removal/retention.ts";
import type { Definition } from "../definition/definitions.ts";
import { pause } from "../pauses.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** The shortest and longest pause between two searches for runs to remove. */
const periodMsMin = 60_000;
const periodMsMax = 3_600_000;
/** The number of sweeps after which all runs are checked again: clocks of other machines may have been behind. */
const sweepsFromStart = 20;
/** Small enough to let other work in between. */
const rowsPerSlice = 200;

interface Keeping {
  readonly policy: RetentionPolicy & { readonly function: string };
  readonly ms: number;
  readonly swept: SweptPlaces;
}

/**
 * Removes ended runs whose retention is over, as their functions say, in small transactions.
 * Workers of several processes search at different times. A run that one of them removed is
 * gone for the others.
 */
export async function removeOld(
  context: RuntimeContext,
  functions: Iterable<Definition>,
  signal: AbortSignal,
): Promise<void> {
  const all = [...functions].flatMap(keepingOf);
  if (all.length === 0) return;
  const { background, store } = context;
  const shortest = Math.min(...all.map(({ ms }) => ms));
  const periodMs = Math.min(Math.max(shortest / 10, periodMsMin), periodMsMax);
  let pauseMs = periodMsMin * store.random();
  for (let sweeps = 1; !signal.aborted; sweeps += 1) {
    await pause(background, pauseMs, signal);
    for (const each of all) {
      if (sweeps % sweepsFromStart === 0) each.swept.clear();
      await sweepOne(context, each, signal);
    }
    pauseMs = periodMs * (0.5 + store.random() / 2);
  }
}

function keepingOf({ name, keepMs, keepFailedMs }: Definition): readonly Keeping[] {
  const keeping = (
    ms: number | undefined,
    results: RetentionPolicy["results"],
  ): readonly Keeping[] =>
    ms === undefined
      ? []
      : [
          {
            policy: {
              function: name,
              olderThan: ms,
              ...(results && { results }),
            },
            ms,
            swept: new Map(),
          },
        ];
  if (keepMs === keepFailedMs) return keeping(keepMs, undefined);
  return [
    ...keeping(keepMs, ["completed", "cancelled"]),
    ...keeping(keepFailedMs, ["failed", "timedOut"]),
  ];
}

async function sweepOne(
  { store, tell }: RuntimeContext,
  { policy, swept }: Keeping,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  const details = { function: policy.function };
  try {
    const options = { signal, rowsPerSlice };
    const report = await removeFinished(store, policy, options, swept);
    // Runs that could not be removed yet are found again from the start.
    if (report.skipped > 0) swept.clear();
    if (report.trees > 0)
      tell({
        level: "debug",
        message: `Removed ${report.trees} runs of ${policy.function} that are no longer kept.`,
        details: { ...details, runs: report.trees },
      });
  } catch (error) {
    swept.clear();
    if (signal.aborted || isPassing(error)) return;
    tell({
      level: "warn",
      message: `Old runs of ${policy.function} could not be removed: ${(error as Error).message}`,
      details,
    });
  }
}
