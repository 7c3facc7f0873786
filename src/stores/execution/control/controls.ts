import { parseDelayId } from "../../../model/delay-id.ts";
import type { Holder } from "../../../model/execution-event.ts";
import { parseExecutionId } from "../../../model/execution-id.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { parseFunctionName } from "../../../model/function-name.ts";
import type { ExecutionResult } from "../../../model/result.ts";
import { checkedCount, checkedText } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { checkedFence, checkedVersion } from "../checks.ts";
import { answerDelay, pauseDelay } from "../timers/delays.ts";
import type { AnswerDelayOutcome } from "../timers/delays.ts";
import type { Surroundings } from "../context.ts";
import {
  cancelActivity,
  pauseExecution,
  requestCancellation,
  setProgress,
  unparkExecution,
  unpauseExecution,
} from "./lifecycle.ts";
import type { CancellationOutcome, Changed } from "./lifecycle.ts";
import { resolveExternal } from "./resolve.ts";
import { receiveSignal, sendSignal } from "./signals.ts";
import type { SendSignalOutcome } from "./signals.ts";

/** A received signal with its value. */
export interface SignalTaken {
  readonly seq: number;
  readonly value: unknown;
  readonly nextVersion: number;
}

/** Steering executions from outside. */
export interface ExecutionControls {
  /** Keeps an execution from being locked. May be repeated. @throws HoldfastError `EXECUTION_RUNNING`, `EXECUTION_FINISHED` … */
  pause(id: string, wait?: WaitOptions): Promise<Changed>;
  /** Lets a paused execution go on. May be repeated. */
  unpause(id: string, wait?: WaitOptions): Promise<Changed>;
  /** Lets a parked execution go on. May be repeated. */
  unpark(id: string, wait?: WaitOptions): Promise<Changed>;
  /** Asks an execution to end; what nobody runs ends at once. May be repeated. */
  cancel(
    id: string,
    options?: WaitOptions & {
      /** For people; kept in the log and in the result. */
      readonly reason?: string;
    },
  ): Promise<CancellationOutcome>;
  /**
   * Ends an activity or external execution at once, also while it runs. May
   * be repeated. `cancel` leaves the end of a running one to its worker; this
   * is for whoever has killed that worker's attempt, or does not wait for it:
   * what it still reports is refused.
   * @throws HoldfastError `EVENTS_INVALID` for a workflow.
   */
  cancelActivity(
    id: string,
    wait?: WaitOptions,
  ): Promise<"cancelled" | "alreadyFinished">;
  /** Resolves an external execution; the same answer again is fine. @throws HoldfastError `RESOLUTION_CONFLICT`, `NOT_EXTERNAL` */
  resolve(
    id: string,
    result: ExecutionResult,
    wait?: WaitOptions,
  ): Promise<"resolved" | "alreadyResolved">;
  /** Sends a signal. Give a key to be able to repeat the call. @throws HoldfastError `SIGNAL_CONFLICT`, `EXECUTION_FINISHED` */
  signal(
    id: string,
    signal: string,
    value: unknown,
    options?: WaitOptions & { readonly key?: string },
  ): Promise<SendSignalOutcome>;
  /** Takes the oldest signal of a name, or answers undefined. Repeat it with the same version. */
  receive(
    id: string,
    signal: string,
    version: number,
    options?: WaitOptions & {
      readonly fence?: Pick<Holder, "executor" | "run">;
      readonly call?: number;
      readonly seen?: number;
    },
  ): Promise<SignalTaken | undefined>;
  /** Shows a value to people who look at the execution; null removes it. May be repeated. */
  setProgress(id: string, progress: unknown, wait?: WaitOptions): Promise<void>;
  /** Cancels a delay that nobody has answered yet. May be repeated. @throws HoldfastError `DELAY_NOT_FOUND` */
  cancelDelay(delay: string, wait?: WaitOptions): Promise<AnswerDelayOutcome>;
  /** Keeps a delay from expiring until it is unpaused. May be repeated. @throws HoldfastError `DELAY_NOT_FOUND` */
  pauseDelay(delay: string, wait?: WaitOptions): Promise<void>;
  unpauseDelay(delay: string, wait?: WaitOptions): Promise<void>;
}

export function executionControls(around: Surroundings): ExecutionControls {
  return {
    ...lifecycleControls(around),
    ...signalControls(around),
    ...delayControls(around),
  };
}

function lifecycleControls({
  database,
  clock,
  codec,
  endings,
}: Surroundings): Pick<
  ExecutionControls,
  | "pause"
  | "unpause"
  | "unpark"
  | "cancel"
  | "cancelActivity"
  | "resolve"
  | "setProgress"
> {
  const of = (
    id: string,
  ): { readonly id: ExecutionId; readonly at: number } => ({
    id: parseExecutionId(id),
    at: clock.now(),
  });
  return {
    pause: async (id, wait) => database.write(pauseExecution, of(id), wait),
    unpause: async (id, wait) => database.write(unpauseExecution, of(id), wait),
    unpark: async (id, wait) => database.write(unparkExecution, of(id), wait),
    cancel: async (id, { reason, ...wait } = {}) =>
      database.write(
        requestCancellation,
        {
          ...of(id),
          reason:
            reason === undefined
              ? null
              : checkedText("A reason", reason, 4_096),
          cancelled:
            reason === undefined
              ? endings.cancelled
              : codec.finished({ kind: "cancelled", reason }),
        },
        wait,
      ),
    cancelActivity: async (id, wait) =>
      database.write(
        cancelActivity,
        { ...of(id), cancelled: endings.cancelled },
        wait,
      ),
    resolve: async (id, result, wait) =>
      database.write(
        resolveExternal,
        { ...of(id), finished: codec.finished(result) },
        wait,
      ),
    setProgress: async (id, progress, wait) =>
      database.write(
        setProgress,
        {
          id: parseExecutionId(id),
          progress: progress === null ? null : codec.value(progress),
        },
        wait,
      ),
  };
}

function signalControls({
  database,
  clock,
  codec,
  ids,
}: Surroundings): Pick<ExecutionControls, "signal" | "receive"> {
  return {
    async signal(id, signal, value, options = {}) {
      const { key, ...wait } = options;
      return database.write(
        sendSignal,
        {
          id: parseExecutionId(id),
          signal: parseFunctionName(signal),
          signalKey:
            key === undefined
              ? ids.nextId("Run")
              : checkedText("A signal's key", key),
          at: clock.now(),
          value: codec.value(value),
          valueHash: codec.hash(value),
        },
        wait,
      );
    },
    async receive(id, signal, version, options = {}) {
      const { fence, call = 0, seen = 0, ...wait } = options;
      const taken = await database.write(
        receiveSignal,
        {
          id: parseExecutionId(id),
          signal: parseFunctionName(signal),
          version: checkedVersion(version),
          at: clock.now(),
          ...(fence && { fence: checkedFence(fence) }),
          call: checkedCount("call", call),
          seen: checkedCount("seen", seen),
        },
        wait,
      );
      return taken && { ...taken, value: codec.readValue(taken.value) };
    },
  };
}

function delayControls({
  database,
  clock,
}: Surroundings): Pick<
  ExecutionControls,
  "cancelDelay" | "pauseDelay" | "unpauseDelay"
> {
  const setPaused = async (
    delay: string,
    isPaused: boolean,
    wait: WaitOptions | undefined,
  ): Promise<void> =>
    database.write(pauseDelay, { delay: parseDelayId(delay), isPaused }, wait);
  return {
    cancelDelay: async (delay, wait) =>
      database.write(
        answerDelay,
        { delay: parseDelayId(delay), at: clock.now(), outcome: "cancelled" },
        wait,
      ),
    pauseDelay: (delay, wait) => setPaused(delay, true, wait),
    unpauseDelay: (delay, wait) => setPaused(delay, false, wait),
  };
}
