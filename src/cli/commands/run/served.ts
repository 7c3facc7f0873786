import { after } from "../../../host/timers.ts";
import type { Holdfast } from "../../../runtime/client/holdfast.ts";

/** The time in milliseconds after which a due run without a worker is reported. */
export const patienceMs = 2_000;

/** Resolves to false if no worker has locked the run within the given time, and to undefined if that is unknown. Listens for changes instead of polling. */
export function isTakenSoon(
  { database, executions }: Pick<Holdfast, "database" | "executions">,
  id: string,
  withinMs: number,
  stop: AbortSignal,
): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    const end = (isTaken: boolean | undefined): void => {
      unsubscribe();
      cancel();
      stop.removeEventListener("abort", onStop);
      resolve(isTaken);
    };
    const onStop = (): void => end(undefined);
    // The wait for the result reports an unreadable run.
    const look = (): void =>
      void executions.get(id).then(
        ({ status }) => status !== "pending" && end(true),
        () => end(undefined),
      );
    const unsubscribe = database.subscribe(look);
    const cancel = after(withinMs, () => end(false));
    stop.addEventListener("abort", onStop);
    if (stop.aborted) onStop();
    else look();
  });
}

/** Reports once why a run is parked, as soon as it is; returns a function that stops watching. */
export function untilParked(
  { database, executions }: Pick<Holdfast, "database" | "executions">,
  id: string,
  tell: (reason: string) => void,
): () => void {
  const look = (): void =>
    void executions.get(id).then(
      ({ interruption }) => {
        if (interruption?.kind !== "parked" || isOver) return;
        stop();
        tell(interruption.reason);
      },
      // The wait for the result reports the error.
      () => undefined,
    );
  let isOver = false;
  const unsubscribe = database.subscribe((hint) => {
    if (hint.kind === "unknown" || (hint.kind === "change" && hint.key === id)) look();
  });
  const stop = (): void => {
    isOver = true;
    unsubscribe();
  };
  look();
  return stop;
}
