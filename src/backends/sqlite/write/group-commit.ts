import { after, monotonicMs, realSoon } from "../../../host/timers.ts";
import type { HoldfastError } from "../../../model/errors.ts";
import { afterDurable, afterRefusal } from "../../../sql/fate.ts";
import type { Change } from "../../../sql/operation.ts";
import type { Meters } from "../../meters.ts";
import { queueFull } from "../../refusals.ts";
import { isLasting, runBatch } from "./batch.ts";
import type { BatchLimits, BatchResult, Ran } from "./batch.ts";
import { nextRetryMs } from "./busy.ts";
import { CallQueue } from "./call.ts";
import type { Call } from "./call.ts";
import type { Connection } from "./connection.ts";
import { databaseBusy } from "./database-busy.ts";
import { outcomeUnknown, writesStopped } from "./failures.ts";
import type { Flusher } from "./flusher.ts";

type Committed = Extract<BatchResult, { kind: "committed" }>;

export interface GroupCommitOptions {
  readonly limits: BatchLimits;
  readonly busyBudgetMs: number;
  /** The file whose lock other processes may hold, when there is a file. */
  readonly path: string;
  readonly queueCallsMax: number;
  /** Awaited by the first call. The next call runs it again if it fails. */
  readonly prepare: (() => Promise<void>) | undefined;
  /** Called inside every transaction, before its first call. */
  readonly beforeBatch: () => void;
  /** Receives a batch's changes once they are durable; an empty list for unnamed changes. */
  readonly onDurable: (changes: readonly Change[]) => void;
  /** Called after every commit that has changed something. */
  readonly onChanged: () => void;
  /** Called after every commit. @returns whether another process waited for it. */
  readonly afterCommit: (statements: number, boundBytes: number) => boolean;
  /**
   * Called when another process holds the write lock. @returns whether some process will announce
   * when it is free.
   */
  readonly onBusy: () => boolean;
}

/** The number of batches that use savepoints after one had to be rerun for lack of them. */
const carefulBatches = 16;

/**
 * Turns calls into few transactions and fewer flushes.
 *
 * Calls gather in a queue. A batch of them runs in one transaction on this thread, without
 * yielding. Then the flusher makes the commit durable on its own thread. Only then are the callers
 * answered, in the order of their calls. During a flush, calls gather for the next batch, which
 * starts early only when a full one is waiting. A lone call skips the hand-over: when flushes are
 * known to be fast, it is flushed right here.
 */
export class GroupCommit {
  readonly #connection: Connection;
  readonly #flusher: Flusher;
  readonly #meters: Meters;
  readonly #options: GroupCommitOptions;
  readonly #queue = new CallQueue();
  readonly #onIdle: (() => void)[] = [];
  readonly #onRoom: (() => void)[] = [];
  #scheduled = false;
  #unflushed = 0;
  #holds = 0;
  #careful = 0;
  /**
   * Calls at the head of the queue that get one transaction each, since one of them may make a
   * transaction unable to commit.
   */
  #alone = 0;
  /** The number of calls in a full batch: the size of the last batch that a limit ended. */
  #fullCalls: number;
  /** True when another process waited for our last commit. */
  #othersWait = false;
  /** Ends the wait for a lock at once. */
  #retry: (() => void) | undefined;
  #busySinceMs: number | undefined;
  #retryMs = 0;
  #refusal: HoldfastError | undefined;
  #prepare: (() => Promise<void>) | undefined;

  constructor(
    connection: Connection,
    flusher: Flusher,
    meters: Meters,
    options: GroupCommitOptions,
  ) {
    this.#connection = connection;
    this.#flusher = flusher;
    this.#meters = meters;
    this.#options = options;
    this.#prepare = options.prepare;
    this.#fullCalls = options.limits.batchCalls;
  }

  get queueDepth(): number {
    return this.#queue.length;
  }

  submit(call: Call): void {
    if (this.#refusal !== undefined) throw this.#refusal;
    const { queueCallsMax } = this.#options;
    if (this.#queue.length >= queueCallsMax) throw queueFull(queueCallsMax);
    this.#queue.push(call);
    if (this.#prepare === undefined) return this.#schedule();
    this.makeReady().catch((error: HoldfastError) => this.#failQueued(error));
  }

  /** Runs the preparation for the first batch, unless it is done or in progress. */
  async makeReady(): Promise<void> {
    const prepare = this.#prepare;
    this.#prepare = undefined;
    const release = this.hold();
    try {
      await prepare?.();
    } catch (error) {
      this.#prepare = prepare;
      throw error;
    } finally {
      release();
    }
  }

  /** Cancels a queued call. @returns false when a batch has taken the call: then it happens. */
  cancel(call: Call): boolean {
    const cancelled = this.#queue.cancel(call);
    this.#noticeIdle();
    return cancelled;
  }

  /** Resolves when no call is queued or running. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle.push(resolve);
      this.#noticeIdle();
    });
  }

  /** Resolves when the queue is at most half full. */
  room(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRoom.push(resolve);
      this.#noticeRoom();
    });
  }

  /** Refuses every call from now on, including queued ones. */
  refuse(error: HoldfastError): void {
    this.#refusal ??= error;
    this.#failQueued(error);
  }

  #failQueued(error: HoldfastError): void {
    if (isLasting(error)) this.#refusal ??= error;
    for (const call of this.#queue.takeWhere(() => true)) call.fail(error);
    this.#noticeIdle();
  }

  /**
   * Runs `action` while every commit is durable and no batch starts, as a restart of the log
   * requires. Calls keep gathering until it ends.
   */
  async whileHeld(action: () => Promise<void>): Promise<void> {
    const release = this.hold();
    try {
      if (this.#unflushed > 0) await this.#flusher.flush().catch(() => undefined);
      await action();
    } finally {
      release();
    }
  }

  /** Keeps batches from starting until the returned function is called. */
  hold(): () => void {
    this.#holds += 1;
    return () => {
      this.#holds -= 1;
      this.#schedule();
    };
  }

  /**
   * Retries at once, because the lock that a batch waits for is free.
   * @returns whether any batch waits.
   */
  retryNow(): boolean {
    const retry = this.#retry;
    if (retry === undefined) return false;
    this.#retry = undefined;
    // Not inside the code that brought the news.
    queueMicrotask(retry);
    return true;
  }

  #schedule(): void {
    if (this.#scheduled || this.#holds > 0 || this.#busySinceMs !== undefined) return;
    if (this.#queue.length === 0 || !this.#mayRun()) return;
    this.#scheduled = true;
    realSoon(() => {
      this.#scheduled = false;
      if (this.#holds === 0 && this.#queue.length > 0) this.#runNext();
    });
  }

  /** At most one commit may wait for its flush while another is being flushed. */
  #mayRun(): boolean {
    if (this.#unflushed === 0) return true;
    // When another process waits, it gets the duration of a flush to take its turn.
    if (this.#othersWait) return false;
    // Calls that run one by one share a flush, as they would have shared a commit.
    if (this.#alone > 0) return true;
    return this.#unflushed === 1 && this.#queue.length >= this.#fullCalls;
  }

  #runNext(): void {
    const startedMs = monotonicMs();
    const isAlone = this.#alone > 0;
    const result = this.#run(isAlone);
    if (result.kind !== "busy") this.#notBusy();
    if (result.kind !== "busy" && isAlone) this.#alone -= 1;
    switch (result.kind) {
      case "committed":
        if (this.#careful > 0) this.#careful -= 1;
        if (!isAlone)
          this.#fullCalls = result.isFull ? result.calls.length : this.#options.limits.batchCalls;
        if (result.hasChanged) this.#options.onChanged();
        this.#measured(result, startedMs);
        this.#othersWait = this.#options.afterCommit(
          this.#connection.statements,
          this.#connection.boundBytes,
        );
        this.#makeDurable(result);
        break;
      case "busy":
        this.#queue.unshift(result.calls);
        this.#retryLater();
        break;
      case "lost":
        this.#lost(result);
        break;
      case "refused":
        this.#alone += result.calls.length;
        this.#runAgain(result.calls);
        // The call may depend on a commit that is not durable yet.
        if (result.guilty !== undefined) this.#makeDurable(result.guilty);
        break;
      default:
        // Spoiled: the rerun uses savepoints.
        this.#careful = carefulBatches;
        this.#runAgain(result.calls);
    }
    this.#schedule();
    this.#noticeIdle();
  }

  /** Reruns calls in order, on the next turn. */
  #runAgain(calls: readonly Call[]): void {
    if (calls.length > 0) this.#meters.reruns += 1;
    this.#queue.unshift(calls);
  }

  #measured({ calls }: Committed, startedMs: number): void {
    this.#meters.committed(calls.length, monotonicMs() - startedMs);
    const [first] = calls;
    if (first !== undefined) this.#meters.queued(startedMs - first.sinceMs);
  }

  /** Fails the calls of a transaction that was lost or could not begin. */
  #lost({ calls, error }: Extract<BatchResult, { kind: "lost" }>): void {
    const told = [...calls];
    const { batchCalls } = this.#options.limits;
    while (calls.length === 0 && told.length < batchCalls) {
      const call = this.#queue.shift();
      if (call === undefined) break;
      told.push(call);
    }
    this.#meters.rollbacks += told.length;
    for (const call of told) call.fail(error);
    if (isLasting(error)) this.refuse(error);
  }

  #run(isAlone: boolean): BatchResult {
    const { limits, beforeBatch } = this.#options;
    let first = true;
    return runBatch(
      this.#connection,
      () => {
        if (first) beforeBatch();
        first = false;
        return this.#queue.shift();
      },
      isAlone ? { ...limits, batchCalls: 1 } : limits,
      isAlone || this.#careful > 0,
    );
  }

  #makeDurable(batch: Ran): void {
    // Live output of runs: nothing rests on it, and the next flush takes it along.
    if (batch.calls.every(({ body }) => body.isUnflushed)) return this.#settle(batch);
    if (
      this.#unflushed === 0 &&
      this.#queue.length + batch.calls.length <= this.#flusher.inlineCallsMax
    ) {
      try {
        this.#flusher.flushInline();
      } catch (error) {
        return this.#flushFailed(batch, error);
      }
      return this.#settle(batch);
    }
    this.#unflushed += 1;
    this.#flusher.flush().then(
      () => {
        this.#unflushed -= 1;
        this.#settle(batch);
        this.#schedule();
        this.#noticeIdle();
      },
      (error: unknown) => {
        this.#unflushed -= 1;
        this.#flushFailed(batch, error);
      },
    );
  }

  #settle(batch: Ran): void {
    const changes: Change[] = [];
    let hasUnnamed = false;
    const { calls, outcomes } = batch;
    for (let index = 0; index < calls.length; index += 1) {
      const call = calls[index];
      const outcome = outcomes[index];
      if (call === undefined || outcome === undefined) continue;
      this.#meters.operations.ran(call.body, call.takenMs - call.sinceMs, call.ranMs);
      call.stopWaiting?.();
      if (outcome.kind !== "committed") {
        this.#meters.rollbacks += 1;
        afterRefusal(outcome.afterwards, () =>
          outcome.kind === "failed" ? call.reject(outcome.error) : call.resolve(outcome.value),
        );
        continue;
      }
      afterDurable(outcome.afterwards);
      call.resolve(outcome.value);
      if (outcome.changes !== undefined) {
        hasUnnamed ||= outcome.changes.length === 0;
        changes.push(...outcome.changes);
      }
    }
    if (changes.length > 0) this.#options.onDurable(changes);
    // Reported separately; otherwise a call that shares the batch would hide it.
    if (hasUnnamed) this.#options.onDurable([]);
  }

  /** Fails the calls of a commit that may or may not survive. No listener is notified. */
  #flushFailed(batch: Ran, cause: unknown): void {
    const error = outcomeUnknown(cause);
    for (const call of batch.calls) call.fail(error);
    this.refuse(writesStopped(cause));
  }

  #retryLater(): void {
    const nowMs = monotonicMs();
    this.#busySinceMs ??= nowMs;
    this.#meters.busyRetries += 1;
    const { busyBudgetMs, path } = this.#options;
    const busySinceMs = this.#busySinceMs;
    const outOfPatience = this.#queue.takeWhere(
      (call) => nowMs - Math.max(call.sinceMs, busySinceMs) >= busyBudgetMs,
    );
    for (const call of outOfPatience) call.fail(databaseBusy(busyBudgetMs, path));
    const willBeTold = this.#options.onBusy();
    this.#retryMs = nextRetryMs(this.#retryMs, willBeTold);
    const retry = (): void => {
      this.#retry = undefined;
      cancel();
      if (this.#holds === 0 && this.#queue.length > 0) this.#runNext();
      else this.#notBusy();
    };
    const cancel = after(this.#retryMs, retry);
    this.#retry = retry;
  }

  #notBusy(): void {
    if (this.#busySinceMs !== undefined) this.#meters.lockedOut(monotonicMs() - this.#busySinceMs);
    this.#busySinceMs = undefined;
    this.#retryMs = 0;
  }

  #noticeRoom(): void {
    if (this.#queue.length * 2 > this.#options.queueCallsMax) return;
    for (const resolve of this.#onRoom.splice(0)) resolve();
  }

  #noticeIdle(): void {
    this.#noticeRoom();
    if (this.#queue.length > 0 || this.#unflushed > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}
