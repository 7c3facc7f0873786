import type { LoggedResponse } from "../../../model/execution/event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { spokenOrigin } from "../../failures.ts";
import type { Settled } from "../run-state.ts";
import { isSameShape, recordedShape, spokenShape, type CallShape } from "./call-shape.ts";
import {
  isResponse,
  type Delivery,
  type FailedAttempts,
  type LoggedHistory,
  type Script,
} from "./script.ts";

/** What the log says, and what the code did instead. */
export interface Difference {
  readonly call: number;
  readonly version: number | null;
  readonly recorded: string;
  readonly actual: string;
  /** What the code threw before it made the call. */
  readonly thrown?: unknown;
}

/**
 * Holds the code of a run to its log. While the log lasts, deliveries come
 * from it and calls must be those that it has; behind it is the frontier,
 * where things happen for the first time.
 */
export class Replay {
  readonly #script: Script;
  readonly #onDifference: (difference: Difference) => void;
  #next = 0;
  #isOver = false;
  #isDifferent = false;
  #comparesInputs = true;

  constructor(script: Script, onDifference: (difference: Difference) => void) {
    this.#script = script;
    this.#onDifference = onDifference;
  }

  /** True once the log is at its end. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** True once the code has made all calls of the log, and no others. */
  get hasMatched(): boolean {
    return this.#isOver && !this.#isDifferent;
  }

  /** All children that the log has asked for, with their calls. */
  get children(): readonly (readonly [ExecutionId, number])[] {
    return [...this.#script.recorded.values()].flatMap(({ event }) =>
      event.kind === "childRequested" ? [[event.child, event.call]] : [],
    );
  }

  /** All responses that were there when it was loaded. */
  get responses(): readonly LoggedResponse<unknown>[] {
    const { deliveries, later } = this.#script;
    return [...deliveries.filter(isResponse), ...later];
  }

  /** What comes next; undefined at the end of the log. */
  nextDelivery(): Delivery | undefined {
    const next = this.#script.deliveries[this.#next];
    if (next !== undefined) this.#next += 1;
    return next;
  }

  /** Responses that come after all that the log has seen. */
  get later(): readonly LoggedResponse<unknown>[] {
    return this.#script.later;
  }

  /**
   * The event that is recorded for a call, if there is one and it is for the
   * same call. A request without one must not have others behind it: requests
   * are never appended later than what follows them. A step or a receive
   * without one was merely open.
   */
  match(call: number, asked: CallShape): LoggedHistory | undefined {
    const { recorded, lastCall, requestedUpTo } = this.#script;
    const found = recorded.get(call);
    if (found === undefined) {
      const isRequest = asked.kind === "child" || asked.kind === "start" || asked.kind === "sleep";
      if (isRequest && (call < lastCall || call <= requestedUpTo))
        this.#differ(call, undefined, spokenShape(asked));
      return undefined;
    }
    const was = recordedShape(found.event);
    if (was !== undefined && !isSameShape(was, this.#compared(was, asked)))
      this.#differ(call, found, spokenShape(asked));
    return found;
  }

  /** From here on inputs may have come from what is not known: they are not compared. */
  forgetInputs(): void {
    this.#comparesInputs = false;
  }

  #compared(was: CallShape, asked: CallShape): CallShape {
    return this.#comparesInputs ? asked : { ...asked, inputHash: was.inputHash };
  }

  /** Attempts of a step that have failed before. */
  failedAttempts(call: number): FailedAttempts | undefined {
    return this.#script.failed.get(call);
  }

  /**
   * Whether code that asks may take a new way: the log has no call behind
   * those made so far. It may still have deliveries for them: a process can be
   * killed between two of one append, when its code has taken the new way
   * behind the first and that is not recorded yet.
   */
  isPatched(id: string, calls: number): boolean {
    const { patches, lastCall } = this.#script;
    return patches.has(id) || this.#isOver || calls >= lastCall;
  }

  /** Whether code behind so many calls may not have run before: it was to run behind the last outcomes that were recorded. */
  mayBeNew(calls: number): boolean {
    const { lastCall, endsAtRest } = this.#script;
    return calls >= lastCall && !endsAtRest;
  }

  hasPatch(id: string): boolean {
    return this.#script.patches.has(id);
  }

  /** An outcome of a call that the code did not make, and how it ended instead, if it has. */
  missed(logged: LoggedHistory, settled?: Settled): void {
    this.#differ(logged.event.call, logged, noCall, settled);
  }

  /** The same for the answer of a child or a delay. */
  missedSource(id: string): void {
    for (const logged of this.#script.recorded.values()) {
      const { child, delay } = logged.event as {
        child?: string;
        delay?: string;
      };
      if (child === id || delay === id) return this.missed(logged);
    }
    this.#differ(this.#script.lastCall, undefined, noCall);
  }

  /** The log is at its end: has the code made all of its calls? */
  finish(calls: number, settled?: Settled): void {
    this.#isOver = true;
    const { lastCall, recorded } = this.#script;
    if (lastCall <= calls) return;
    this.#differ(calls + 1, recorded.get(calls + 1), noCall, settled);
  }

  /**
   * The code has ended while the log goes on. What is left may only be for
   * calls that it made and did not wait for; else how it ended is what it did
   * instead. Answers with the responses among it, and those behind the log:
   * children end by them.
   */
  endEarly(calls: number, settled: Settled): readonly LoggedResponse<unknown>[] {
    const responses: LoggedResponse<unknown>[] = [];
    for (
      let delivery = this.nextDelivery();
      delivery !== undefined;
      delivery = this.nextDelivery()
    ) {
      if (isResponse(delivery)) responses.push(delivery);
      else if (isOfCall(delivery) && delivery.event.call > calls) {
        this.missed(delivery, settled);
        return responses;
      }
    }
    this.finish(calls, settled);
    return [...responses, ...this.later];
  }

  /** The log is not followed any further. */
  abandon(): void {
    this.#isOver = true;
  }

  #differ(call: number, found: LoggedHistory | undefined, actual: string, settled?: Settled): void {
    this.#isDifferent = true;
    const was = found === undefined ? undefined : recordedShape(found.event);
    this.#onDifference({
      call,
      version: found?.version ?? null,
      recorded: was === undefined ? "nothing" : spokenShape(was),
      actual: settled === undefined ? actual : spokenEnd(settled),
      ...(settled?.kind === "threw" && { thrown: settled.error }),
    });
  }
}

const noCall = "no such call";

/** An error that keeps the code from its calls is what somebody has to mend. */
function spokenEnd(settled: Settled): string {
  return settled.kind === "returned"
    ? `${noCall}: the code returned`
    : `${noCall}: the code threw ${spokenOrigin(settled.error)}`;
}

/** Not the delivery of a cancellation, which is no call's. */
function isOfCall({ event }: LoggedHistory): boolean {
  return event.kind !== "cancellationDelivered";
}
