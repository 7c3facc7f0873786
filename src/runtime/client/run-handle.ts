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
import { validated } from "../definition/schema.ts";

/** A run, wherever its code is. Made by `start`, `get` and `fork`. */
export interface Run<out Out> {
  readonly id: string;
  /**
   * What it returned, once it has.
   * @throws RunFailedError when it failed, was cancelled or timed out
   * @throws HoldfastError `DEADLINE_EXCEEDED` after `timeout`, `ABORTED`, `EXECUTION_NOT_FOUND`
   */
  result(options?: WaitOptions): Promise<Out>;
  /**
   * One word: `pending`, `scheduled`, `running`, `blocked`, `paused`,
   * `cancelling`, `parked`, or how it ended. `unserved` when it has been due
   * for two seconds and no worker runs anything of its function.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`
   */
  status(): Promise<ExecutionStatus | "unserved">;
  /** What its code last gave to `ctx.setProgress`. */
  progress(): Promise<unknown>;
  /**
   * Asks it to end. Its code is told, cleans up, and ends. With `force` it and
   * its children end without running any more code.
   */
  cancel(options?: { readonly reason?: string; readonly force?: boolean }): Promise<void>;
  /**
   * Nothing new is begun until `resume`; what runs is recorded first.
   * @throws HoldfastError `EXECUTION_RUNNING` for an activity of which an attempt runs, `EXECUTION_FINISHED`
   */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Lets a parked run be tried again. */
  unpark(): Promise<void>;
  /**
   * Sends it a message, which is kept until it asks. Sending twice under one
   * key is sending once. Without a value `true` is sent, so that what comes can
   * be told from a wait whose time is over.
   * @throws HoldfastError `EXECUTION_FINISHED`, `SIGNAL_CONFLICT`, `INPUT_INVALID`
   */
  signal<In>(
    signal: Signal<unknown, In>,
    ...args: [In] extends [true]
      ? [value?: true, options?: { readonly key?: string }]
      : [value: NoInfer<In>, options?: { readonly key?: string }]
  ): Promise<void>;
  /** Its log, by version. */
  events: Executions["events"] extends (id: string, options?: infer O) => infer R
    ? (options?: O) => R
    : never;
  /**
   * What was recorded of it, or of its last pass, as a plain JSON document
   * with its values in the clear: to be kept in a file, and given to
   * `replayHistory` of `holdfast/testing` when the code has changed.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_ERASED`
   * @example await writeFile("test/order-42.json", JSON.stringify(await run.history(), null, 2));
   */
  history(): Promise<RunHistory>;
  /** A copy that goes on from after an event of this run. */
  fork(atVersion: number, options?: { readonly id?: string }): Promise<Run<Out>>;
  /**
   * A copy of a run that failed, timed out or was cancelled; it goes on from
   * before that. What the run did afterwards is forgotten: one that has undone
   * its work is better started anew, under another id.
   */
  retry(options?: { readonly id?: string }): Promise<Run<Out>>;
  /**
   * Removes all that a run which has ended, and those below it, were given,
   * recorded, returned or logged. Its id stays taken, so that it is not run
   * again by mistake, until retention removes it.
   * @throws HoldfastError `EXECUTION_UNFINISHED`, `EXECUTION_NOT_FOUND`, `ABORTED`
   */
  erase: Executions["erase"] extends (id: string, options?: infer O) => infer R
    ? (options?: O) => R
    : never;
}

/** A handle; nothing is looked up. */
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

/** Methods of a handle that are refused when the run is another function's. */
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

/** A handle of a run that was started before: when it is first asked, it is made sure that the run is of the function. */
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
  return run;
}

/** Undefined when there is no such run, or it cannot be read: whoever asks is told so in its own way. */
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
    `Run ${id} is one of ${found}, not of ${asked}. Nothing was done. Give get() the function that the run was started with, or check the id.`,
    { id, function: found, asked },
  );
}
