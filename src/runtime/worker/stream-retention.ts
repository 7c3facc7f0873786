import { findEndedStreams, removeStreamSlice } from "../../stores/stream/sweep.ts";
import { isPassing } from "../failures.ts";
import { pause } from "../pauses.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** The shortest and longest pause between two searches. */
const periodMsMin = 10_000;
const periodMsMax = 3_600_000;
/** Small enough to let other work in between. */
const rowsPerSlice = 200;

/**
 * Removes the live output of runs that ended long enough ago, and of runs that are gone. Workers of
 * several processes search at different times.
 */
export async function removeOldStreams(
  context: RuntimeContext,
  keepMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { background, store, clock, tell } = context;
  const periodMs = Math.min(Math.max(keepMs / 10, periodMsMin), periodMsMax);
  while (!signal.aborted) {
    await pause(background, periodMs * (0.5 + store.random() / 2), signal);
    if (signal.aborted) return;
    try {
      await sweepStreams(context, clock.now() - keepMs, signal);
    } catch (error) {
      if (signal.aborted || isPassing(error)) continue;
      tell({
        level: "warn",
        message: `Old live output could not be removed: ${(error as Error).message}`,
        details: {},
      });
    }
  }
}

/** Removes the live output of runs that ended before an instant. */
export async function sweepStreams(
  { database, store }: Pick<RuntimeContext, "database" | "store">,
  endedBefore: number,
  signal: AbortSignal,
): Promise<void> {
  for (let after: number | undefined = 0; after !== undefined && !signal.aborted;) {
    const input: Parameters<ReturnType<typeof findEndedStreams>>[0] = { endedBefore, after };
    const { executions, next } = await database.read(findEndedStreams(store), input);
    for (const execution of executions) {
      const slice = { execution, rowsMax: rowsPerSlice };
      while ((await database.write(removeStreamSlice(store), slice)) >= rowsPerSlice)
        await database.pause();
    }
    after = next;
  }
}
