import { isHoldfastError } from "../../../model/errors.ts";
import type { Duration } from "../../../model/time/durations.ts";
import type { Tx } from "../../../sql/operation.ts";
import type {
  CallOptions,
  Detached,
  StartOptions,
  StepBody,
  StepOptions,
  TransactionOptions,
} from "../../definition/workflow-context.ts";
import { RunContext } from "./run-context.ts";
import { ctxInStep, where } from "../step-context.ts";

/**
 * The `ctx` of the user's code. A refusal of a method that returns a promise rejects that
 * promise, as in any async function. So `.catch` and `Promise.allSettled` see one bad input of
 * many. A call that comes too late, from a timer, is an unhandled rejection of its run instead
 * of an exception that ends the process. Only a call inside a running step throws: it fails the
 * step even if no code awaits it. Methods without a promise (`spawn`, `external`, `random`, …)
 * can only throw.
 */
export class RefusingContext extends RunContext {
  override call(fn: unknown, input?: unknown, options?: CallOptions): Promise<never> {
    try {
      return super.call(fn, input, options);
    } catch (error) {
      return refusal(error, this, "call");
    }
  }

  override start(fn: unknown, input?: unknown, options?: StartOptions): Promise<Detached> {
    try {
      return super.start(fn, input, options);
    } catch (error) {
      return refusal(error, this, "start");
    }
  }

  override step(
    name: string,
    first: StepBody<unknown> | StepOptions,
    second?: StepBody<unknown>,
  ): Promise<never> {
    try {
      return super.step(name, first, second);
    } catch (error) {
      return refusal(error, this, "step");
    }
  }

  override transaction<T>(
    name: string,
    first: (() => Tx<T>) | TransactionOptions,
    second?: () => Tx<T>,
  ): Promise<T> {
    try {
      return super.transaction(name, first, second);
    } catch (error) {
      return refusal(error, this, "transaction");
    }
  }

  override sleep(time: Duration): Promise<void> {
    try {
      return super.sleep(time);
    } catch (error) {
      return refusal(error, this, "sleep");
    }
  }

  override sleepUntil(instant: Date | number): Promise<void> {
    try {
      return super.sleepUntil(instant);
    } catch (error) {
      return refusal(error, this, "sleepUntil");
    }
  }

  override receive(signal: unknown, options?: { readonly timeout?: Duration }): Promise<never> {
    try {
      return super.receive(signal, options);
    } catch (error) {
      return refusal(error, this, "receive");
    }
  }
}

/** Rejects with a stack that begins at the line of the user's code: internal frames would fill it. */
function refusal(
  error: unknown,
  ctx: RefusingContext,
  method: keyof RefusingContext,
): Promise<never> {
  const inside = where.getStore();
  if (inside?.step !== undefined && inside.isStepOver !== true) throw ctxInStep(inside.step);
  if (isHoldfastError(error)) Error.captureStackTrace(error, ctx[method] as () => void);
  // Rejected in the run's context, wherever the call came from. An unhandled rejection is then
  // known to be of this run.
  return where.run({ id: ctx.id }, () => rejected(error));
}

async function rejected(error: unknown): Promise<never> {
  throw error;
}
