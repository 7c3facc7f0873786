import { sleep } from "../../host/timers.ts";

/** @returns whether the work was done in time; it goes on either way. */
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
