import { HoldfastError } from "../../model/errors.ts";
import { openHoldfast } from "../../open/open-holdfast.ts";
import { untilAbandoned } from "../process/own-process.ts";
import { orderFunctions, type StepTold } from "./orders.ts";

/** What a worker process of the demo tells the process that started it. */
export type WorkerTold = StepTold | { readonly kind: "ready" };

/**
 * A worker process of the demo, which is there to be killed. It ends when the
 * process that started it is gone; Ctrl-C, which every process of a terminal
 * gets, is that one's affair.
 */
export async function runDemoWorker(database: string, file: string, paceMs: number): Promise<void> {
  if (process.send === undefined)
    throw new HoldfastError(
      "OPTION_INVALID",
      "A worker of the demo is started by the demo: run `holdfast demo`.",
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
