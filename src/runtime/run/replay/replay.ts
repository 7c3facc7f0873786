import type { LoggedResponse } from "../../../model/execution/event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { Settled } from "../run-state.ts";
import { isSameShape, recordedShape, type CallShape, type HasInput } from "./call-shape.ts";
import {
  isResponse,
  type Delivery,
  type FailedAttempts,
  type LoggedHistory,
  type Script,
} from "./script.ts";

/** The log's call, and the call that the code made instead. */
export interface Difference {
  readonly call: number;
  readonly version: number | null;
  /** Undefined when the log has no such call. */
  readonly recorded: CallShape | undefined;
  /** Undefined when the code did not make the call. */
  readonly actual: CallShape | undefined;
  /** The end of the code, if it kept the code from the call. */
  readonly settled?: Settled | undefined;
}

/**
 * Compares the code of a run with its log. While the log lasts, it supplies the deliveries, and
 * the code's calls must be the recorded calls. Behind the log is the frontier, where things
 * happen for the first time.
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

  /** All responses that were there when the run was loaded. */
  get responses(): readonly LoggedResponse<unknown>[] {
    const { deliveries, later } = this.#script;
    return [...deliveries.filter(isResponse), ...later];
  }

  /** The next delivery; undefined at the end of the log. */
  nextDelivery(): Delivery | undefined {
    const next = this.#script.deliveries[this.#next];
    if (next !== undefined) this.#next += 1;
    return next;
  }

  /** Responses that no event of the log has seen. */
  get later(): readonly LoggedResponse<unknown>[] {
    return this.#script.later;
  }

  /**
   * Returns the recorded event of a call, if there is one and it matches. A request without an
   * event must not have later events: requests are never appended later than events that follow
   * them. A step or a receive without an event was merely open.
   */
  match(call: number, asked: CallShape, hasInput?: HasInput): LoggedHistory | undefined {
    const { recorded, lastCall, requestedUpTo } = this.#script;
    const found = recorded.get(call);
    if (found === undefined) {
      const isRequest = asked.kind === "child" || asked.kind === "start" || asked.kind === "sleep";
      if (isRequest && (call < lastCall || call <= requestedUpTo))
        this.#differ(call, undefined, asked);
      return undefined;
    }
    const was = recordedShape(found.event);
    if (was !== undefined && !isSameShape(was, this.#compared(was, asked), hasInput))
      this.#differ(call, found, asked);
    return found;
  }

  /** The function of the child that this call requested, if the log has such a call. */
  childOf(call: number): string | undefined {
    const event = this.#script.recorded.get(call)?.event;
    return event?.kind === "childRequested" ? event.function : undefined;
  }

  /** Stops comparing inputs, since they may depend on unknown values from here on. */
  forgetInputs(): void {
    this.#comparesInputs = false;
  }

  #compared(was: CallShape, asked: CallShape): CallShape {
    return this.#comparesInputs ? asked : { ...asked, inputHash: was.inputHash };
  }

  /** The earlier failed attempts of a step or a transaction. */
  failedAttempts(call: number): FailedAttempts | undefined {
    return this.#script.failed.get(call);
  }

  /** The last attempt of a step that an earlier pass has announced; 0 for none. */
  begunAttempt(call: number, name: string): number {
    const begun = this.#script.begun.get(call);
    return begun?.name === name ? begun.attempt : 0;
  }

  /**
   * True if the code may take a new path: the log has no call after the calls made so far. The
   * log may still have deliveries for them. A process can be killed between two deliveries of
   * one append, when its code has taken the new path after the first and has not recorded it
   * yet.
   */
  isPatched(id: string, calls: number): boolean {
    const { patches, lastCall } = this.#script;
    return patches.has(id) || this.#isOver || calls >= lastCall;
  }

  /** True if the code after this number of calls may not have run before: it was about to run after the last recorded outcomes. */
  mayBeNew(calls: number): boolean {
    const { lastCall, endsAtRest } = this.#script;
    return calls >= lastCall && !endsAtRest;
  }

  hasPatch(id: string): boolean {
    return this.#script.patches.has(id);
  }

  /** Reports an outcome of a call that the code did not make, and the end of the code if it has ended. */
  missed(logged: LoggedHistory, settled?: Settled): void {
    this.#differ(logged.event.call, logged, undefined, settled);
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
    this.#differ(this.#script.lastCall, undefined, undefined);
  }

  /** Ends the log, and checks that the code has made all of its calls. */
  finish(calls: number, settled?: Settled): void {
    this.#isOver = true;
    const { lastCall, recorded } = this.#script;
    if (lastCall <= calls) return;
    this.#differ(calls + 1, recorded.get(calls + 1), undefined, settled);
  }

  /**
   * Handles code that has ended while the log continues. The rest of the log may only concern
   * calls that the code made and did not wait for. Otherwise the end of the code is the
   * difference. Returns the remaining responses, and those after the log: they end children.
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

  /** Stops following the log. */
  abandon(): void {
    this.#isOver = true;
  }

  #differ(
    call: number,
    found: LoggedHistory | undefined,
    actual: CallShape | undefined,
    settled?: Settled,
  ): void {
    this.#isDifferent = true;
    this.#onDifference({
      call,
      version: found?.version ?? null,
      recorded: found && recordedShape(found.event),
      actual,
      settled,
    });
  }
}

/** False for the delivery of a cancellation, which belongs to no call. */
function isOfCall({ event }: LoggedHistory): boolean {
  return event.kind !== "cancellationDelivered";
}
