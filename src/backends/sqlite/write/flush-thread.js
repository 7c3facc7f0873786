// Plain JavaScript, embedded as a text by `npm run threads`.
import { parentPort, workerData } from "node:worker_threads";
import { flushLog } from "./flush-log.js";

/** Waits for the shared counter to move, flushes and answers, forever. */
function serve({ log, faults, counter }) {
  const requests = new Int32Array(counter);
  for (let served = 0; ;) {
    Atomics.wait(requests, 0, served);
    served = Atomics.load(requests, 0);
    const startedMs = performance.now();
    let error;
    try {
      flushLog(log, faults);
    } catch (failure) {
      error = { message: failure.message, code: failure.code };
    }
    parentPort.postMessage({ elapsedMs: performance.now() - startedMs, error });
  }
}

serve(workerData);
