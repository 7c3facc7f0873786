import type { WaitOptions } from "../sql/database.ts";
import type { ExecutionStatus } from "../model/execution/status.ts";
import { statusOf } from "../model/execution/status.ts";
import type { Executions } from "../stores/execution/executions.ts";
import { signalOf, type Signal } from "./definitions.ts";
import { runFailure } from "./failures.ts";
import { resultOf } from "./run-result.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { validated } from "./schema.ts";

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
  /** A copy that goes on from after an event of this run. */
  fork(
    atVersion: number,
    options?: { readonly id?: string },
  ): Promise<Run<Out>>;
  /** A copy of a failed run that goes on from before it failed. */
  retry(options?: { readonly id?: string }): Promise<Run<Out>>;
}

/** A handle; nothing is looked up. */
export function runOf<Out>(
  context: RuntimeContext,
  name: string,
  id: string,
): Run<Out> {
  const {
    pages: { executions },
    clock,
    unserved,
  } = context;
  return {
    id,
    async result(options) {
      const result = await resultOf(context, id, options);
      if (result.kind === "completed") return result.value as Out;
      throw runFailure({ id, function: name }, result);
    },
    async status() {
      const { state, function: served } = await executions.get(id);
      const status = statusOf(state, clock.now());
      if (status !== "pending" || state.pending.kind !== "pending")
        return status;
      const { dueAt } = state.pending;
      return (await unserved.isUnserved(served, dueAt)) ? "unserved" : status;
    },
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
    async fork(atVersion, options) {
      const fork = await executions.fork(id, atVersion, options);
      return runOf(context, name, fork.id);
    },
    async retry(options) {
      const fork = await executions.retry(id, options);
      return runOf(context, name, fork.id);
    },
  };
}
