import { Worker } from "node:worker_threads";

/**
 * Starts a thread from its text: a file beside ours would be missing in the
 * bundle of an app, and from a data URL no driver could be required.
 */
export function startThread(text: string, workerData: object): Worker {
  // The user's flags (loaders, profilers) are not for our threads.
  return new Worker(text, { eval: true, execArgv: [], workerData });
}
