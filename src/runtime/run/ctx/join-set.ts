import { HoldfastError } from "../../../model/errors.ts";
import type { LoggedResponse } from "../../../model/execution/event.ts";
import type { ExecutionResult } from "../../../model/execution/result.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { definitionOf } from "../../definition/definitions.ts";
import { generatedJoinSet, namedJoinSet, type JoinSetId } from "../../../model/ids/join-set-id.ts";
import type { LoadedExecution } from "../../../stores/execution/lock/locked.ts";
import { runFailure } from "../../failures.ts";
import type { CallOptions, Child } from "../../definition/workflow-context.ts";
import { assertOutsideStep } from "./calls.ts";
import type { RunState, Source } from "../run-state.ts";

/** The services that a set needs of its context. */
export interface SetHost {
  spawn(
    fn: unknown,
    input: unknown,
    options: CallOptions | undefined,
    index: number,
    source: Source,
  ): ExecutionId;
  handle(id: ExecutionId, result: () => Promise<unknown>): Child<unknown>;
}

interface Asker {
  readonly resolve: (member: Member) => void;
  readonly reject: (error: unknown) => void;
}

/** A call that waits for the end of one member. */
interface Waiter {
  readonly ended: () => void;
  /** Called when the run is cancelled while the call waits. */
  readonly cancelled?: (reason: unknown) => void;
}

interface Member {
  readonly id: ExecutionId;
  readonly function: string;
  result: ExecutionResult | undefined;
  waiters: readonly Waiter[];
}

/**
 * Children whose results are taken in the order of delivery. Deliveries are in the log, so a
 * set needs no events of its own and answers the same on replay.
 */
export class RunJoinSet {
  readonly #run: RunState;
  readonly #host: SetHost;
  readonly #members = new Map<ExecutionId, Member>();
  /** Ended members that were not taken, oldest first. */
  readonly #ended: Member[] = [];
  /** Waiting calls of `next`, oldest first. */
  readonly #askers: Asker[] = [];
  #taken = 0;
  #isClosed = false;

  constructor(run: RunState, host: SetHost) {
    this.#run = run;
    this.#host = host;
    const { signal } = run.abort;
    // Results that were not taken stay, for a cleanup that asks again.
    signal.addEventListener("abort", () => {
      for (const { reject } of this.#askers.splice(0)) reject(signal.reason);
      for (const member of this.#members.values()) cancelWaiters(member, signal.reason);
    });
  }

  spawn(fn: unknown, input?: unknown, options?: CallOptions): Child<unknown> {
    if (this.#isClosed) throw joinSetClosed(this.#run.id);
    const index = this.#members.size + 1;
    const source: Source = {
      call: 0,
      deliver: (logged) => this.#deliver(logged),
    };
    const id = this.#host.spawn(fn, input, options, index, source);
    const member: Member = {
      id,
      function: definitionOf(fn, "the function to call").name,
      result: undefined,
      waiters: [],
    };
    this.#members.set(id, member);
    return this.#host.handle(id, () => resultOf(member));
  }

  async next(): Promise<unknown> {
    assertOutsideStep();
    const asked = this.#taken + this.#askers.length;
    if (asked >= this.#members.size) return undefined;
    const first = this.#ended.shift();
    const member =
      first ??
      (await new Promise<Member>((resolve, reject) => this.#askers.push({ resolve, reject })));
    if (first !== undefined) this.#taken += 1;
    return valueOf(member);
  }

  try():
    | { readonly kind: "found"; readonly value: unknown }
    | { readonly kind: "pending" | "allTaken" } {
    assertOutsideStep();
    const first = this.#ended.shift();
    if (first !== undefined) {
      this.#taken += 1;
      return { kind: "found", value: valueOf(first) };
    }
    const isAll = this.#taken + this.#askers.length >= this.#members.size;
    return { kind: isAll ? "allTaken" : "pending" };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const open = [...this.#members.values()].filter(({ result }) => result === undefined);
    for (const { id } of open.toReversed()) this.#host.handle(id, () => Promise.resolve()).cancel();
    const { signal } = this.#run.abort;
    const isCleanup = signal.aborted;
    await Promise.all(open.map(endOf));
    // Like a call that was made before the cancellation, it waits and then rejects.
    if (signal.aborted && !isCleanup) throw signal.reason as Error;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator {
    while (this.#taken + this.#askers.length < this.#members.size) yield await this.next();
  }

  #deliver({ response }: LoggedResponse<unknown>): void {
    if (response.kind !== "child") return;
    const member = this.#members.get(response.child);
    if (member === undefined) return;
    member.result = response.result as ExecutionResult;
    for (const { ended } of member.waiters) ended();
    member.waiters = [];
    const asker = this.#askers.shift();
    if (asker === undefined) this.#ended.push(member);
    else {
      this.#taken += 1;
      asker.resolve(member);
    }
  }
}

function valueOf(member: Member): unknown {
  const { id, result } = member;
  if (result === undefined) throw new Error(`${id} has not ended.`);
  if (result.kind === "completed") return result.value;
  throw runFailure({ id, function: member.function }, result);
}

function resultOf(member: Member): Promise<unknown> {
  if (member.result !== undefined) return Promise.resolve().then(() => valueOf(member));
  const promise = new Promise<void>((ended, reject) => {
    const cancelled = (reason: unknown): void => {
      // A result that no code awaits must not end the process.
      void promise.then(undefined, () => undefined);
      reject(reason);
    };
    member.waiters = [...member.waiters, { ended, cancelled }];
  }).then(() => valueOf(member));
  return promise;
}

function endOf(member: Member): Promise<void> {
  return new Promise((ended) => {
    member.waiters = [...member.waiters, { ended }];
  });
}

function cancelWaiters(member: Member, reason: unknown): void {
  const { waiters } = member;
  member.waiters = waiters.filter(({ cancelled }) => cancelled === undefined);
  for (const { cancelled } of waiters) cancelled?.(reason);
}

/** The names of a run's sets: unnamed sets are numbered, and no two sets have the same name. */
export class JoinSetNames {
  #count = 0;
  readonly #names = new Set<string>();

  /** @throws HoldfastError `JOIN_SET_EXISTS`, `NAME_INVALID` */
  next(
    { id, continuations }: Pick<LoadedExecution, "id" | "continuations">,
    name: string | undefined,
  ): JoinSetId {
    this.#count += 1;
    if (name === undefined) return generatedJoinSet(this.#count, continuations);
    if (this.#names.has(name)) throw joinSetExists(id, name);
    this.#names.add(name);
    return namedJoinSet(name, continuations);
  }
}

/** The error for a second set of a name: its children would get the ids of the first set's children. */
function joinSetExists(id: ExecutionId, name: string): HoldfastError {
  return new HoldfastError(
    "JOIN_SET_EXISTS",
    `Run ${id} already has a join set "${name}". Spawn in it, or choose another name.`,
    { id, name },
  );
}

function joinSetClosed(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "JOIN_SET_CLOSED",
    `A join set of run ${id} was closed, so nothing more can be spawned in it. Create another one.`,
    { id },
  );
}
