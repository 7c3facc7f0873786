import { keepAlive, monotonicMs, sleep, soon } from "../../host/timers.ts";
import { unreachable } from "../../model/errors.ts";
import type { HoldfastError } from "../../model/errors.ts";
import { afterDurable, afterRefusal } from "../../sql/fate.ts";
import type { Change } from "../../sql/operation.ts";
import type { Warning } from "../../sql/database.ts";
import type { Meters } from "../meters.ts";
import { CallQueue, callsOf } from "./call-queue.ts";
import type { CallSet, Work } from "./call-queue.ts";
import type { Call } from "./call.ts";
import type { Connection, UserTransaction } from "./connection.ts";
import { isLoss, lastingFailure } from "./failures.ts";
import { LockContention } from "./lock-contention.ts";
import { Pool } from "./pool.ts";
import { RerunGates } from "./rerun-gates.ts";
import { pauseBeforeRetry } from "./retries.ts";
import { SetForms, endingInSet } from "./set-forms.ts";
import type { SetOutcome } from "./set-forms.ts";
import { leave, look, transact } from "./transaction.ts";
import type { BeforeCommit, Ending } from "./transaction.ts";
import { within } from "./within.ts";

export interface DispatcherOptions {
  readonly open: (signal: AbortSignal) => Promise<Connection>;
  readonly poolSize: number;
  readonly queueCallsMax: number;
  readonly setFormLanes: number;
  readonly meters: Meters;
  readonly warn: (warning: Warning) => void;
  readonly beforeCommit: BeforeCommit | undefined;
  /** Called for every commit that wrote something, just before its caller is answered. */
  readonly onCommitted: (tx: number, changes: readonly Change[]) => void;
}

type Committed = Extract<Ending<unknown>, { readonly kind: "committed" }>;
type Refused = Extract<Ending<unknown>, { readonly kind: "rolledBack" | "failed" }>;

/**
 * Assigns connections to calls, and settles each call by the end of its transaction. There is one
 * transaction per call, or per set (`set-forms.ts`). Deadlocks, serialization failures and lock
 * timeouts rerun the body for up to 15 seconds (`retries.ts`). Users' reruns then go one at a time
 * (`rerun-gates.ts`). A connection lost before COMMIT was sent gives `CONNECTION_LOST`, or
 * `DATABASE_UNREACHABLE` after a silence (`silence/`); lost during COMMIT it gives
 * `OUTCOME_UNKNOWN`.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #queue: CallQueue;
  readonly #pool: Pool;
  readonly #sets: SetForms;
  readonly #gates: RerunGates;
  readonly #contention: LockContention;
  readonly #onIdle: (() => void)[] = [];
  readonly #onRoom: (() => void)[] = [];
  /** Calls that a transaction has taken and that are not settled. */
  #running = 0;
  /** Held while any call waits or runs, because connections do not keep the process alive. */
  #release: (() => void) | undefined;
  #scheduled = false;
  #refusal: HoldfastError | undefined;
  #writesStopped: HoldfastError | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#queue = new CallQueue(options.queueCallsMax);
    this.#pool = new Pool(options.open, options.poolSize, {
      onRoom: () => this.#schedule(),
      onDown: (error) => this.#rejectWaiting(error),
    });
    this.#sets = new SetForms(options);
    this.#gates = new RerunGates(this.#queue);
    this.#contention = new LockContention(options.warn);
  }

  get queueDepth(): number {
    return this.#queue.depth;
  }

  adopt(connection: Connection): void {
    this.#pool.adopt(connection);
  }

  /** Submits a call. @throws HoldfastError `QUEUE_FULL`, or the reason why calls are refused. */
  submit(call: Call): void {
    const refusal = this.#refusal ?? this.#stopped(call);
    if (refusal !== undefined) throw refusal;
    this.#queue.push(call);
    this.#release ??= keepAlive();
    this.#schedule();
  }

  /** Cancels a call. @returns false when a transaction has taken the call: then it happens. */
  cancel(call: Call): boolean {
    const cancelled = this.#queue.withdraw(call);
    this.#notice();
    return cancelled;
  }

  /** Resolves when no call waits or runs. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle.push(resolve);
      this.#notice();
    });
  }

  /** Resolves when the queue is at most half full. */
  room(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRoom.push(resolve);
      this.#notice();
    });
  }

  /** Refuses every call from now on, including waiting ones. */
  refuse(error: HoldfastError): void {
    this.#refusal ??= error;
    this.#rejectWaiting(error);
  }

  /**
   * Refuses all further writes, including waiting ones. Running calls continue, and so do reads.
   */
  stopWrites(error: HoldfastError): void {
    this.#writesStopped ??= error;
    this.#schedule();
  }

  /** Cuts the connections of running calls. */
  cut(): void {
    this.#pool.cut();
  }

  /** Says goodbye to the server, or cuts the connections when that takes longer than the limit. */
  async close(farewellMs: number): Promise<void> {
    const closed = this.#pool.close();
    if (!(await within(farewellMs, closed))) this.#pool.cut();
    await closed;
  }

  /**
   * Schedules work, but not at once, so that calls made together can run together. While other
   * calls run, it waits for a turn of the event loop, because callers that were just answered are
   * about to call again.
   */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const dispatch = (): void => {
      this.#scheduled = false;
      this.#dispatch();
    };
    if (this.#running === 0) queueMicrotask(dispatch);
    else soon(dispatch);
  }

  #dispatch(): void {
    while (this.#pool.hasIdle) {
      const work = this.#queue.take(this.#sets.lanesFree > 0);
      if (work === undefined) return this.#notice();
      const refusal = this.#stopped(callsOf(work)[0]);
      if (refusal !== undefined) this.#turnAway(work, refusal);
      else void this.#run(work, this.#pool.take());
    }
    const wanted = this.#queue.appetite(this.#sets.lanesFree);
    if (wanted > 0) this.#pool.grow(wanted);
    this.#notice();
  }

  async #run(work: Work, connection: Connection): Promise<void> {
    const [first] = callsOf(work);
    if (first.access === "write" && first.firstTakenMs === undefined)
      this.#options.meters.queued(monotonicMs() - first.sinceMs);
    for (const call of callsOf(work)) this.#begin(call);
    if ("calls" in work) await this.#runSet(work, connection);
    else await this.#runOne(work, connection);
    this.#schedule();
  }

  #stopped({ access }: Call): HoldfastError | undefined {
    return access === "write" ? this.#writesStopped : undefined;
  }

  #turnAway(work: Work, refusal: HoldfastError): void {
    for (const call of callsOf(work)) {
      this.#begin(call);
      this.#reject(call, refusal);
    }
  }

  #begin(call: Call): void {
    // From here on the call happens, so its caller can no longer give up.
    call.stopWaiting?.();
    call.stopWaiting = undefined;
    if (call.firstTakenMs === undefined) this.#running += 1;
    call.firstTakenMs ??= monotonicMs();
  }

  async #runOne(call: Call, connection: Connection): Promise<void> {
    if (call.access === "read") {
      this.#settle(call, await look(connection, call.body));
      await leave(connection);
      return this.#pool.give(connection);
    }
    const startedMs = monotonicMs();
    if (isOfUser(call)) this.#contention.began(call);
    const ending = await transact(
      connection,
      beginningOf(call),
      call.body,
      this.#options.beforeCommit,
    );
    this.#contention.ended(call);
    this.#pool.give(connection);
    if (ending.kind === "committed") this.#options.meters.committed(1, monotonicMs() - startedMs);
    this.#settle(call, ending);
  }

  async #runSet(set: CallSet, connection: Connection): Promise<void> {
    const { ending, turn, answered } = await this.#sets.run(set, connection);
    this.#pool.give(connection);
    // Lets the next set start while this one waits for its turn to answer.
    this.#schedule();
    await turn;
    // A set that the server refuses to begin is left to `one`, like any failed set.
    if (ending.kind === "notBegun" && isLoss(ending.error))
      this.#beginAgainOrReject(set, ending.error);
    else this.#settleSet(set, ending);
    answered();
  }

  #settleSet({ calls }: CallSet, ending: SetOutcome["ending"]): void {
    if (ending.kind === "committed") this.#tell(ending);
    for (const [index, call] of calls.entries()) {
      const own = endingInSet(ending, index);
      if (own === undefined) this.#putBack(call);
      else this.#settle(call, own);
    }
  }

  #settle(call: Call, ending: Ending<unknown>): void {
    switch (ending.kind) {
      case "committed":
        this.#tell(ending);
        afterDurable(ending.afterwards);
        return this.#resolve(call, ending.value);
      case "rolledBack":
      case "failed":
        return this.#settleRefused(call, ending);
      case "again":
        return this.#retryOrReject(call, ending.error);
      case "notBegun":
        return this.#beginAgainOrReject(call, ending.error);
      default:
        return unreachable(ending);
    }
  }

  /**
   * Runs the actions that the body requested before the call leaves its place, since they may need
   * the same connection.
   */
  #settleRefused(call: Call, ending: Refused): void {
    if (call.access === "write") this.#options.meters.rollbacks += 1;
    afterRefusal(ending.afterwards, () =>
      ending.kind === "rolledBack"
        ? call.resolve(ending.value)
        : call.reject(this.#cutShort(ending.error) ?? ending.error),
    );
    this.#finish(call);
  }

  /** The reason to report when this process cut the connection itself. */
  #cutShort(error: unknown): HoldfastError | undefined {
    return isLoss(error) ? this.#refusal : undefined;
  }

  /** Reports a commit to subscribers. A transaction that wrote nothing is not reported. */
  #tell({ tx, changes }: Committed): void {
    if (tx !== undefined) this.#options.onCommitted(tx, changes);
  }

  #retryOrReject(call: Call, error: HoldfastError): void {
    const { meters } = this.#options;
    const pauseMs = pauseBeforeRetry(call, error);
    if (pauseMs === undefined) {
      if (call.access === "write") meters.rollbacks += 1;
      return this.#reject(call, lastingFailure(error));
    }
    call.attempts += 1;
    meters.reruns += 1;
    if (error.code === "DATABASE_BUSY") {
      meters.busyRetries += 1;
      call.lockReruns += 1;
      this.#letGo(this.#gates.lockedOut(call));
    }
    if (isOfUser(call)) {
      if (isOfLocks(error)) this.#contention.rerun(call);
      if (!this.#gates.mayGo(call)) return;
    }
    void sleep(pauseMs).then(() => this.#putBack(call));
  }

  /**
   * Begins the work again, since the connection was bad and nothing had happened. Another
   * connection may work.
   */
  #beginAgainOrReject(work: Work, error: HoldfastError): void {
    const calls = callsOf(work);
    const pauseMs = pauseBeforeRetry(calls[0], error, false);
    for (const call of calls) {
      if (pauseMs === undefined) this.#reject(call, this.#cutShort(error) ?? error);
      else call.attempts += 1;
    }
    if (pauseMs === undefined) return;
    void sleep(pauseMs).then(() => this.#putBack(work));
  }

  #putBack(work: Work): void {
    this.#queue.again(work);
    if (this.#refusal === undefined) this.#schedule();
    else this.#rejectWaiting(this.#refusal);
  }

  #resolve(call: Call, value: unknown): void {
    call.resolve(value);
    this.#finish(call);
  }

  #reject(call: Call, error: unknown): void {
    call.reject(error);
    this.#finish(call);
  }

  #finish(call: Call): void {
    const { body, sinceMs, firstTakenMs = sinceMs } = call;
    this.#options.meters.operations.ran(body, firstTakenMs - sinceMs, monotonicMs() - firstTakenMs);
    this.#running -= 1;
    this.#queue.finish(call);
    this.#letGo(this.#gates.leave(call));
  }

  /** Reruns the next call in turn, if one waited. */
  #letGo(next: Call | undefined): void {
    if (next === undefined) this.#schedule();
    else this.#putBack(next);
  }

  #rejectWaiting(error: HoldfastError): void {
    // Calls that wait at a gate come first, so that no call is left to hand the gate to.
    for (const call of this.#gates.drain()) this.#reject(call, error);
    for (const call of this.#queue.drain()) {
      call.stopWaiting?.();
      if (call.firstTakenMs !== undefined) this.#running -= 1;
      call.reject(error);
      // The call may have held a gate, which would stay shut for good.
      this.#gates.leave(call);
    }
    this.#notice();
  }

  #notice(): void {
    if (this.#queue.depth * 2 <= this.#options.queueCallsMax)
      for (const resolve of this.#onRoom.splice(0)) resolve();
    if (this.#queue.depth > 0 || this.#running > 0) return;
    this.#release?.();
    this.#release = undefined;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}

/**
 * The kind of a call's transaction. Our operations lock in a known order, so they may wait for
 * locks.
 */
function beginningOf(call: Call): "write" | UserTransaction {
  const { lockReruns, body } = call;
  return isOfUser(call) ? { isolation: body.isolation, lockReruns } : "write";
}

function isOfUser({ access, body }: Call): boolean {
  return access === "write" && !(body.isOurs && body.isolation === "readCommitted");
}

/** True for a lock timeout or a deadlock. */
function isOfLocks({ code, details }: HoldfastError): boolean {
  return code === "DATABASE_BUSY" || details["sqlstate"] === "40P01";
}
