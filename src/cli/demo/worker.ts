import { HoldfastError } from "../../model/errors.ts";
import { openHoldfast } from "../../open/open-holdfast.ts";
import { untilAbandoned } from "../process/own-process.ts";
import { orderFunctions, type StepTold } from "./orders.ts";

/** A message of a demo worker to its parent process. */
export type WorkerTold = StepTold | { readonly kind: "ready" };

/**
 * A worker process of the demo, made to be killed. It ends when its parent
 * process has ended. Ctrl-C reaches every process of a terminal, so the parent
 * handles it.
 */
export async function runDemoWorker(database: string, file: string, paceMs: number): Promise<void> {
  if (process.send === undefined)
    throw new HoldfastError(
      "OPTION_INVALID",
      "The demo starts its own workers. Run `npx holdfast demo`.",
      { option: "demo-worker" },
    );
  const tell = (told: WorkerTold): void => {
    if (process.connected) process.send?.(told);
  };
  const holdfast = await openHoldfast(database, { onEvent: () => undefined });
  const { functions } = orderFunctions({ file, paceMs, tell });
  await holdfast.work(functions);
  tell({ kind: "ready" });
  await untilAbandoned();
  await holdfast.close({ timeout: 0 });
}
