import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import type { WaitOptions } from "../../sql/database.ts";
import type { ExecutionStatus } from "../../model/execution/status.ts";
import type { Executions } from "../../stores/execution/executions.ts";
import { signalOf, type Signal } from "../definition/definitions.ts";
import { historyOf } from "../history/record-history.ts";
import type { RunHistory } from "../history/run-history.ts";
import { runFailure } from "../failures.ts";
import { untilEnd } from "./ending.ts";
import { resultOf, runStatus } from "./run-result.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { LiveOutput, StreamOptions } from "../stream/live-output.ts";
import { validated } from "../definition/schema.ts";

/** A run, whichever process executes it. Made by `start`, `get` and `fork`. */
export interface Run<out Out> {
  readonly id: string;
  /**
   * Resolves with the run's result once it has completed.
   * @throws RunFailedError when the run failed, was cancelled or timed out
   * @throws HoldfastError `DEADLINE_EXCEEDED` after `timeout`, `ABORTED`, `EXECUTION_NOT_FOUND`
   */
  result(options?: WaitOptions): Promise<Out>;
  /**
   * Returns one word: `pending`, `scheduled`, `running`, `blocked`, `paused`, `cancelling`,
   * `parked`, or the run's outcome. It is `unserved` when the run has been due for two seconds
   * and no worker executes a run of its function.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`
   */
  status(): Promise<ExecutionStatus | "unserved">;
  /** The last value that the code gave to `ctx.setProgress`. */
  progress(): Promise<unknown>;
  /**
   * Asks the run to end. Its code is notified, cleans up, and ends. With `force` the run and
   * its children end without executing any more code.
   */
  cancel(options?: { readonly reason?: string; readonly force?: boolean }): Promise<void>;
  /**
   * Pauses the run: it starts nothing new until `resume`. Running code first records its outcome.
   * @throws HoldfastError `EXECUTION_RUNNING` for an activity with a running attempt, `EXECUTION_FINISHED`
   */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Returns a parked run to the workers, which retry it. */
  unpark(): Promise<void>;
  /**
   * Sends the run a message, which is kept until the run receives it. Repeated calls under one
   * key send one message. A call without a value sends `true`, so that the run can distinguish the
   * message from a timeout.
   * @throws HoldfastError `EXECUTION_FINISHED`, `SIGNAL_CONFLICT`, `INPUT_INVALID`
   */
  signal<In>(
    signal: Signal<unknown, In>,
    ...args: [In] extends [true]
      ? [value?: true, options?: { readonly key?: string }]
      : [value: NoInfer<In>, options?: { readonly key?: string }]
  ): Promise<void>;
  /** The run's log, by version. */
  events: Executions["events"] extends (id: string, options?: infer O) => infer R
    ? (options?: O) => R
    : never;
  /**
   * The record of the run, or of its last pass, as a plain JSON document with its values in the
   * clear. Keep it in a file, and give it to `replayHistory` of `holdfast/testing` when the
   * code has changed.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_ERASED`
   * @example await writeFile("test/order-42.json", JSON.stringify(await run.history(), null, 2));
   */
  history(): Promise<RunHistory>;
  /**
   * Reads the run's live output: values that its steps show while they run. It begins at the
   * beginning, or behind the cursor `after`, and ends with `{ kind: "end" }`. Any process may read,
   * any number of times. It is kept for ten minutes after the end of the run (`keepStreams` of
   * `work`).
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `CURSOR_INVALID`, `ABORTED`, `DATABASE_CLOSED`
   * @example
   * for await (const output of run.stream())
   *   if (output.kind === "chunk") process.stdout.write(String(output.value));
   */
  stream(options?: StreamOptions): AsyncIterable<LiveOutput>;
  /** Copies the run; the copy continues from just after the given event. */
  fork(atVersion: number, options?: { readonly id?: string }): Promise<Run<Out>>;
  /**
   * Copies a run that failed, timed out or was cancelled. The copy continues from just before
   * that end. Later work of the run, such as compensation, is dropped. If the run has compensated
   * its work, start a new run under another id instead.
   */
  retry(options?: { readonly id?: string }): Promise<Run<Out>>;
  /**
   * Removes all inputs, records, results and log lines of a run that has ended, and of the runs
   * below it. Its id stays taken until retention removes it, so that the run is not repeated by
   * mistake.
   * @throws HoldfastError `EXECUTION_UNFINISHED`, `EXECUTION_NOT_FOUND`, `ABORTED`
   */
  erase: Executions["erase"] extends (id: string, options?: infer O) => infer R
    ? (options?: O) => R
    : never;
}

/** Makes a handle without a lookup. */
export function runOf<Out>(context: RuntimeContext, name: string, id: string): Run<Out> {
  const {
    pages: { executions },
  } = context;
  const ask = <T>(asked: () => Promise<T>): Promise<T> => untilEnd(context, asked);
  const done = (asked: () => Promise<unknown>): Promise<void> => ask(asked).then(() => undefined);
  const copied = (copying: () => Promise<{ readonly id: string }>) =>
    ask(copying).then((copy) => runOf<Out>(context, name, copy.id));
  return {
    id,
    result: (options) => ask(() => valueOf<Out>(context, { id, name }, options)),
    status: () => ask(() => statusOf(context, id)),
    progress: () => ask(() => executions.get(id)).then(({ progress }) => progress ?? undefined),
    cancel: (options) => done(() => executions.cancel(id, options)),
    pause: () => done(() => executions.pause(id)),
    resume: () => done(() => executions.unpause(id)),
    unpark: () => done(() => executions.unpark(id)),
    signal: (signal, ...[value = true, options]) =>
      ask(() => send(context, id, signal, { value, options })),
    events: ((options?: never) => ask(() => executions.events(id, options))) as never,
    stream: (options) => context.streams.open(id, options),
    history: () => ask(() => historyOf(executions, id, context.payload)),
    fork: (atVersion, options) => copied(() => executions.fork(id, atVersion, options)),
    retry: (options) => copied(() => executions.retry(id, options)),
    erase: (options) => ask(() => executions.erase(id, options)),
  };
}

async function valueOf<Out>(
  context: RuntimeContext,
  { id, name }: { readonly id: string; readonly name: string },
  options: WaitOptions | undefined,
): Promise<Out> {
  const result = await resultOf(context, id, options);
  if (result.kind === "completed") return result.value as Out;
  throw runFailure({ id, function: name }, result);
}

async function statusOf(
  context: RuntimeContext,
  id: string,
): Promise<ExecutionStatus | "unserved"> {
  return runStatus(context, await context.pages.executions.get(id));
}

async function send(
  { pages: { executions } }: RuntimeContext,
  id: string,
  signal: unknown,
  sent: {
    readonly value: unknown;
    readonly options: { readonly key?: string } | undefined;
  },
): Promise<void> {
  const { name, schema } = signalOf(signal);
  const { value, options } = sent;
  const checked =
    schema === undefined
      ? value
      : await validated(`Signal "${name}"`, schema, value, (valid) => valid);
  await executions.signal(id, name, checked, options);
}

/** Methods of a handle that are refused when the run belongs to another function. */
const checkedMethods = [
  "result",
  "status",
  "progress",
  "cancel",
  "pause",
  "resume",
  "unpark",
  "signal",
  "events",
  "history",
  "fork",
  "retry",
  "erase",
] as const satisfies readonly (keyof Run<unknown>)[];

/** Makes a handle of a run that was started before. Its first call checks that the run belongs to the function. */
export function foundRunOf<Out>(context: RuntimeContext, name: string, id: string): Run<Out> {
  const run = runOf<Out>(context, name, id);
  let isKnown = false;
  const check = async (): Promise<void> => {
    if (isKnown) return;
    const found = await functionOf(context, id);
    if (found === undefined) return;
    if (found !== name) throw functionMismatch(id, name, found);
    isKnown = true;
  };
  for (const method of checkedMethods) {
    const ask = run[method] as (...args: unknown[]) => unknown;
    Object.defineProperty(run, method, {
      enumerable: true,
      value: (...args: unknown[]) => check().then(() => ask(...args)),
    });
  }
  Object.defineProperty(run, "stream", {
    enumerable: true,
    value: (options?: StreamOptions) => context.streams.open(id, options, check),
  });
  return run;
}

/** Undefined when the run is missing or unreadable: each method reports that in its own way. */
async function functionOf(
  { pages: { executions } }: RuntimeContext,
  id: string,
): Promise<string | undefined> {
  try {
    return (await executions.get(id)).function;
  } catch (error) {
    if (isHoldfastError(error) && !error.retryable) return undefined;
    throw error;
  }
}

function functionMismatch(id: string, asked: string, found: string): HoldfastError {
  return new HoldfastError(
    "FUNCTION_MISMATCH",
    `Run ${id} is a run of ${found}, not of ${asked}. Nothing was done. Pass to get() the function that the run was started with, or check the id.`,
    { id, function: found, asked },
  );
}
