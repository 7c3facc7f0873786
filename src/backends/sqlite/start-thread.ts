import { Worker } from "node:worker_threads";

/**
 * Starts a thread from its text. A separate file would be missing in an app's bundle, and from a
 * data URL no driver could be required.
 */
export function startThread(text: string, workerData: object): Worker {
  // The user's flags (loaders, profilers) are not meant for our threads.
  return new Worker(text, { eval: true, execArgv: [], workerData });
}
