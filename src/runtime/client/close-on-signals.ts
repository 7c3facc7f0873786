import type { Clock } from "../../model/time/clock.ts";

/**
 * A repeat within this time is the same Ctrl-C: the terminal sends it to all
 * processes of a command, and a wrapper such as tsx or npx passes it on.
 */
const repeatMs = 300;

/** Listeners of this module. They stay for a moment after the first signal and do not keep the process alive. */
const ours = new WeakSet<(...args: never[]) => unknown>();

/** True if the app listens for a signal, so that the process may continue after it. */
export function isHeardByApp(signal: NodeJS.Signals): boolean {
  return process.listeners(signal).some((listener) => !ours.has(listener));
}

interface Closing {
  readonly close: (signal: NodeJS.Signals) => Promise<void>;
  readonly tell: (error: unknown) => void;
  readonly clock: Clock;
}

/** Closes once when the process is told to end, and then ends the process. Returns a function that stops listening. */
export function closeOnSignals(
  signals: readonly NodeJS.Signals[],
  { close, tell, clock }: Closing,
): () => void {
  let isClosing = false;
  let cancelTimer = (): void => undefined;
  const listeners = signals.map((signal) => {
    const listener = (): void => {
      if (isClosing) return;
      isClosing = true;
      // A later signal has its usual effect: it ends the process at once.
      cancelTimer = clock.wakeAt(clock.now() + repeatMs, stop);
      void close(signal)
        .catch(tell)
        .then(() => {
          stop();
          process.kill(process.pid, signal);
        });
    };
    ours.add(listener);
    process.on(signal, listener);
    return { signal, listener };
  });
  const stop = (): void => {
    cancelTimer();
    for (const { signal, listener } of listeners) process.off(signal, listener);
  };
  return stop;
}
