// Plain JavaScript, so that a thread can run it from source and from dist.
import { fdatasyncSync, fstatSync, statSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";

/**
 * Flushes a file and proves that it is still the one at its path: a flush of
 * an unlinked log succeeds and saves nothing.
 */
export function flushFile(fd, path, faults) {
  if (faults?.delayMs > 0)
    Atomics.wait(
      new Int32Array(new SharedArrayBuffer(4)),
      0,
      0,
      faults.delayMs,
    );
  if (
    faults !== undefined &&
    faults.failAfter !== undefined &&
    faults.failAfter-- <= 0
  )
    throw Object.assign(new Error("EIO: injected flush failure"), {
      code: "EIO",
    });
  fdatasyncSync(fd);
  const flushed = fstatSync(fd, { bigint: true });
  const current = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (
    flushed.nlink === 0n ||
    current?.ino !== flushed.ino ||
    current.dev !== flushed.dev
  )
    throw new Error(
      "the write-ahead log was removed or replaced while it was open",
    );
}

/** Waits for the shared counter to move, flushes, answers; for ever. */
function serve({ fd, path, faults, counter }) {
  const requests = new Int32Array(counter);
  for (let served = 0; ;) {
    Atomics.wait(requests, 0, served);
    served = Atomics.load(requests, 0);
    const startedMs = performance.now();
    let error;
    try {
      flushFile(fd, path, faults);
    } catch (failure) {
      error = { message: failure.message, code: failure.code };
    }
    parentPort.postMessage({ elapsedMs: performance.now() - startedMs, error });
  }
}

if (workerData?.holdfastThread === "flush") serve(workerData);
