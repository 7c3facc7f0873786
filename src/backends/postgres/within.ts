import { sleep } from "../../host/timers.ts";

/** Waits for work, up to a limit. @returns whether it finished in time; it continues either way. */
export async function within(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  const done = new AbortController();
  const tooLate = sleep(timeoutMs, done.signal).then(
    () => false,
    () => false,
  );
  try {
    return await Promise.race([work.then(() => true), tooLate]);
  } finally {
    done.abort();
  }
}
