import { isHoldfastError } from "../../model/errors.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/**
 * What is asked of a Holdfast, as long as the process goes on. When a signal
 * is about to end that, what comes too late is no failure of whoever asked:
 * nobody would be there to catch it, and the process would end with its stack
 * instead of by the signal. A process that listens itself may go on, and is told.
 */
export async function untilEnd<T>({ ending }: RuntimeContext, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    // Only now: it may have been told while this was asked.
    const { by } = ending;
    const isLate = isHoldfastError(error) && error.code === "DATABASE_CLOSED";
    if (!isLate || by === undefined || process.listenerCount(by) > 0) throw error;
    return new Promise(() => undefined);
  }
}
