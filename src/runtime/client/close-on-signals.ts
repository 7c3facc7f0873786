/** Ends a program in order when it is told to stop; returns the way to stop listening. */
export function closeOnSignals(
  signals: readonly NodeJS.Signals[],
  close: (signal: NodeJS.Signals) => Promise<void>,
  tell: (error: unknown) => void,
): () => void {
  const listeners = signals.map((signal) => {
    const listener = (): void => {
      stop();
      // The same signal again does what it always does: it ends the process at once.
      void close(signal)
        .catch(tell)
        .then(() => process.kill(process.pid, signal));
    };
    process.once(signal, listener);
    return { signal, listener };
  });
  const stop = (): void => {
    for (const { signal, listener } of listeners) process.off(signal, listener);
  };
  return stop;
}
