import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import type { Driver } from "../drivers/drivers.ts";
import { heavyProcess } from "../threads.generated.ts";
import type { Failure } from "./heavy-failures.ts";
import { readerEnded } from "./heavy-failures.ts";

/** Messages of the process: in progress, at the last moment to abandon it, at its end. */
type ProcessMessage =
  | { readonly kind: "progress"; readonly done: number; readonly total: number }
  | { readonly kind: "estimate" | "written"; readonly bytes: number }
  | { readonly kind: "done"; readonly value: unknown }
  | { readonly kind: "failed"; readonly failure: Failure };

export interface ProcessTask {
  readonly job: "check" | "backup";
  readonly source: Readonly<Record<string, string>>;
  readonly hear: (message: ProcessMessage) => void;
  readonly failure: (failure: Failure) => Error;
  readonly signal: AbortSignal;
}

/**
 * Runs one long statement in its own process, which can be killed in the middle of it. That takes
 * about 10 ms, whereas a thread ends only with the statement. The process has its own copy of
 * SQLite, so its locks are independent of ours.
 *
 * Once the process has written everything, it asks for permission to finish. From then on the
 * caller's signal is ignored, so that finished work is never reported as aborted.
 */
export async function inKillableProcess<T>(driver: Driver, task: ProcessTask): Promise<T> {
  task.signal.throwIfAborted();
  const child = start(task);
  let outcome: { readonly value: unknown } | { readonly error: unknown } | undefined;
  const abandon = (error: unknown): void => {
    outcome ??= { error };
    child.kill("SIGKILL");
  };
  const onAbort = (): void => abandon(task.signal.reason);
  task.signal.addEventListener("abort", onAbort, { once: true });
  child.on("error", (error) => abandon(task.failure(error)));
  const closed = new Promise<string>((resolve) => {
    child.once("close", (code, signal) => resolve(signal ?? `code ${code}`));
  });
  child.on("message", (message: ProcessMessage) => {
    try {
      task.hear(message);
    } catch (error) {
      return abandon(error);
    }
    if (message.kind === "done") outcome ??= { value: message.value };
    if (message.kind === "failed") outcome ??= { error: task.failure(message.failure) };
    if (message.kind !== "written" || outcome !== undefined) return;
    task.signal.removeEventListener("abort", onAbort);
    child.send({ kind: "publish" });
  });
  child.send({
    job: task.job,
    source: {
      ...task.source,
      driver: driver.name,
      modulePath: driver.modulePath,
    },
  });
  const how = await closed;
  task.signal.removeEventListener("abort", onAbort);
  if (outcome === undefined) throw readerEnded("process", how);
  if ("error" in outcome) throw outcome.error;
  return outcome.value as T;
}

function start(task: ProcessTask): ChildProcess {
  try {
    // Node's flags come first; the argument after the text only names the process.
    return spawn(process.execPath, ["--eval", heavyProcess, "holdfast-heavy"], {
      // The user's flags (loaders, profilers, inspectors) are not meant for our process.
      env: { ...process.env, NODE_OPTIONS: "", ELECTRON_RUN_AS_NODE: "1" },
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
  } catch (error) {
    throw task.failure(error as Error);
  }
}
