import { where } from "../run/step-context.ts";
import type { Notice } from "../runtime-event.ts";

/**
 * Promises that the code of a run left behind. A branch that nobody awaits yet
 * (`const b = branch(ctx); await ctx.sleep("1h"); await b`) may reject while
 * the run waits; Node ends the process for that, with all its other runs. So
 * while a worker runs, what was rejected inside a run is told of and goes no
 * further: whoever awaits it later still gets it. Everything else is none of
 * ours, and ends the process as it would without us.
 */
const tellers = new Set<(notice: Notice) => void>();

/** Returns the way to stop. */
export function watchRejections(tell: (notice: Notice) => void): () => void {
  if (tellers.size === 0) process.on("unhandledRejection", onRejection);
  tellers.add(tell);
  return () => {
    tellers.delete(tell);
    if (tellers.size === 0) process.off("unhandledRejection", onRejection);
  };
}

function onRejection(reason: unknown): void {
  const inside = where.getStore();
  if (inside === undefined) {
    // Another listener decides; alone we do what Node does without any.
    if (process.listenerCount("unhandledRejection") > 1) return;
    throw reason;
  }
  const { id, step } = inside;
  const said =
    reason instanceof Error
      ? `${reason.name}: ${reason.message}`
      : String(reason);
  const place = step === undefined ? "" : `, step "${step}"`;
  for (const tell of tellers)
    tell({
      level: "warn",
      message: `In run ${id}${place} a promise was rejected that nobody awaits: ${said}`,
      details: { id, ...(step !== undefined && { step }) },
    });
}
