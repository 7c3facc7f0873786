import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import type { WaitOptions } from "../../sql/database.ts";
import type { ExecutionStatus } from "../../model/execution/status.ts";
import type { Executions } from "../../stores/execution/executions.ts";
import { signalOf, type Signal } from "../definition/definitions.ts";
import { historyOf } from "../history/record-history.ts";
import type { RunHistory } from "../history/run-history.ts";
import { runFailure } from "../failures.ts";
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
  cancel(options?: {
    readonly reason?: string;
    readonly force?: boolean;
  }): Promise<void>;
  /** Nothing new is begun until `resume`; what runs is recorded first. */
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
  events: Executions["events"] extends (
    id: string,
    options?: infer O,
  ) => infer R
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
  fork(
    atVersion: number,
    options?: { readonly id?: string },
  ): Promise<Run<Out>>;
  /** A copy of a failed run that goes on from before it failed. */
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
export function runOf<Out>(
  context: RuntimeContext,
  name: string,
  id: string,
): Run<Out> {
  const {
    pages: { executions },
  } = context;
  return {
    id,
    async result(options) {
      const result = await resultOf(context, id, options);
      if (result.kind === "completed") return result.value as Out;
      throw runFailure({ id, function: name }, result);
    },
    status: async () => runStatus(context, await executions.get(id)),
    async progress() {
      return (await executions.get(id)).progress ?? undefined;
    },
    async cancel(options) {
      await executions.cancel(id, options);
    },
    async pause() {
      await executions.pause(id);
    },
    async resume() {
      await executions.unpause(id);
    },
    async unpark() {
      await executions.unpark(id);
    },
    async signal(signal, ...args) {
      const { name: sent, schema } = signalOf(signal);
      const [value, options] = args.length === 0 ? [true as never] : args;
      const checked = await validated(`Signal "${sent}"`, schema, value);
      await executions.signal(id, sent, checked, options);
    },
    events: ((options?: never) => executions.events(id, options)) as never,
    history: () => historyOf(executions, id, context.payload),
    async fork(atVersion, options) {
      const fork = await executions.fork(id, atVersion, options);
      return runOf(context, name, fork.id);
    },
    async retry(options) {
      const fork = await executions.retry(id, options);
      return runOf(context, name, fork.id);
    },
    erase: (options) => executions.erase(id, options),
  };
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
export function foundRunOf<Out>(
  context: RuntimeContext,
  name: string,
  id: string,
): Run<Out> {
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

function functionMismatch(
  id: string,
  asked: string,
  found: string,
): HoldfastError {
  return new HoldfastError(
    "FUNCTION_MISMATCH",
    `Run ${id} is one of ${found}, not of ${asked}. Nothing was done. Give get() the function that the run was started with, or check the id.`,
    { id, function: found, asked },
  );
}
