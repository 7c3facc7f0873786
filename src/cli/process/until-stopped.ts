import { keepAlive } from "../../host/timers.ts";

/** Resolves when a command gets a stop signal; keeps the process alive until then. */
export function untilStopped(stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stop.aborted) return resolve();
    const release = keepAlive();
    stop.addEventListener(
      "abort",
      () => {
        release();
        resolve();
      },
      { once: true },
    );
  });
}
