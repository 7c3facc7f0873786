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
  /** The file whose lock others may hold, if it is one. */
  readonly path: string;
  readonly queueCallsMax: number;
  /** What the first call of all waits for; run again by the next one if it fails. */
  readonly prepare: (() => Promise<void>) | undefined;
  /** Asked inside every transaction, before its first call. */
  readonly beforeBatch: () => void;
  /** Told what a batch changed, once that is durable; an empty list for what has no name. */
  readonly onDurable: (changes: readonly Change[]) => void;
  /** Told after every commit that has changed something. */
  readonly onChanged: () => void;
  /** Told after every commit. @returns whether another process waited for it. */
  readonly afterCommit: (statements: number, boundBytes: number) => boolean;
  /** Told when another process holds the write lock. @returns whether somebody will say when it is free. */
  readonly onBusy: () => boolean;
}

/** Batches run with savepoints after one had to be run again because it lacked them. */
const carefulBatches = 16;

/**
 * Turns calls into few transactions and fewer flushes.
 *
 * Calls gather in a queue. A batch of them runs in one transaction on this
 * thread, without giving way; then the flusher makes the commit durable on
 * its own thread, and only then are the callers told, in the order in which
 * they called. While a flush is under way calls gather for the next batch,
 * which starts early only when a full one is waiting. A lone call skips the
 * hand-over: when flushes are known to be fast it is flushed right here.
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
  /** Calls at the head of the queue that get a transaction each, since one of them may let none commit. */
  #alone = 0;
  /** How many calls fill a batch: as many as filled the last one that a limit ended. */
  #fullCalls: number;
  /** Another process waited for our last commit. */
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

  /** Does what has to be done before the first batch, unless that is done or under way. */
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

  /** @returns false when a batch has taken the call: then it happens. */
  cancel(call: Call): boolean {
    const cancelled = this.#queue.cancel(call);
    this.#noticeIdle();
    return cancelled;
  }

  /** Resolves when nothing is queued or under way. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle.push(resolve);
      this.#noticeIdle();
    });
  }

  /** Resolves when the queue is no more than half full. */
  room(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRoom.push(resolve);
      this.#noticeRoom();
    });
  }

  /** Refuses every call from now on, those in the queue included. */
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
   * Runs `action` while every commit is durable and no batch starts: what a
   * restart of the log needs. Calls keep gathering meanwhile.
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

  /** Lets no batch start until the returned function is called. */
  hold(): () => void {
    this.#holds += 1;
    return () => {
      this.#holds -= 1;
      this.#schedule();
    };
  }

  /**
   * The lock that a batch waits for is free: no need to wait longer.
   * @returns whether any batch waits.
   */
  retryNow(): boolean {
    const retry = this.#retry;
    if (retry === undefined) return false;
    this.#retry = undefined;
    // Not inside whatever brought the news.
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

  /** One commit may wait for its flush while another is being flushed, not more. */
  #mayRun(): boolean {
    if (this.#unflushed === 0) return true;
    // When another process waits it gets the time of a flush to take its turn.
    if (this.#othersWait) return false;
    // Those that run alone share a flush, as they would have shared a commit.
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
        // It may have met what is not durable yet.
        if (result.guilty !== undefined) this.#makeDurable(result.guilty);
        break;
      default:
        // Spoiled: with savepoints this time.
        this.#careful = carefulBatches;
        this.#runAgain(result.calls);
    }
    this.#schedule();
    this.#noticeIdle();
  }

  /** In order, on the next turn. */
  #runAgain(calls: readonly Call[]): void {
    if (calls.length > 0) this.#meters.reruns += 1;
    this.#queue.unshift(calls);
  }

  #measured({ calls }: Committed, startedMs: number): void {
    this.#meters.committed(calls.length, monotonicMs() - startedMs);
    const [first] = calls;
    if (first !== undefined) this.#meters.queued(startedMs - first.sinceMs);
  }

  /** The transaction is gone, or could not even begin: then the calls it was for are told. */
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
    // Told apart, or a call that shares a batch with it would hide it.
    if (hasUnnamed) this.#options.onDurable([]);
  }

  /** The commit happened and may or may not survive; nobody is told of it. */
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
