import { isHoldfastError } from "../../model/errors.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import { isHeardByApp } from "./close-on-signals.ts";

/**
 * Answers a call, unless a signal is about to end the process. A call that
 * comes too late then never settles: its error would end the process with a
 * stack instead of by the signal. A process that listens for the signal itself
 * may continue, so its calls are refused.
 */
export async function untilEnd<T>({ ending }: RuntimeContext, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    // Checked only now: the signal may have arrived during the call.
    const { by } = ending;
    const isLate = isHoldfastError(error) && error.code === "DATABASE_CLOSED";
    if (!isLate || by === undefined || isHeardByApp(by)) throw error;
    return new Promise(() => undefined);
  }
}
