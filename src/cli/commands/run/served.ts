import { after } from "../../../host/timers.ts";
import type { Holdfast } from "../../../runtime/client/holdfast.ts";

/** So long a run may be due before one asks whether anybody runs it. */
export const patienceMs = 2_000;

/** False when no worker has taken a run within so long, undefined when nobody knows. Listens for what happens instead of asking again and again. */
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
    // What cannot be read is told by those who wait for it.
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

/** Tells once why a run is parked, as soon as it is; returns the way to stop. */
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
      // Who waits for its result is told what is wrong.
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
