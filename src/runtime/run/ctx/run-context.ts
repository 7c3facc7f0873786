import { childId } from "../../../model/ids/execution-id.ts";
import { delayId } from "../../../model/ids/delay-id.ts";
import type { Metadata } from "../../../model/execution/metadata.ts";
import { oneOffJoinSet, type JoinSetId } from "../../../model/ids/join-set-id.ts";
import { checkedText, optionsOf } from "../../../model/shape.ts";
import { durationMs, type Duration } from "../../../model/time/durations.ts";
import { instantOfDate, resolveStartAt, type StartAt } from "../../../model/time/instants.ts";
import type { Tx } from "../../../sql/operation.ts";
import { definitionOf, signalOf } from "../../definition/definitions.ts";
import { runLog } from "../run-log.ts";
import type {
  CallOptions,
  Child,
  Detached,
  External,
  ExternalOptions,
  JoinSet,
  RunLog,
  StartOptions,
  StepBody,
  StepOptions,
  TransactionOptions,
  WorkflowContext,
} from "../../definition/workflow-context.ts";
import { callSite } from "./call-site.ts";
import { childName, shape, startIntention, timeIntention } from "../replay/call-shape.ts";
import {
  answeringId,
  assertOutsideStep,
  beginTask,
  isPatched,
  promiseOf,
  request,
  takeCall,
  type Call,
} from "./calls.ts";
import {
  childHandle,
  hasInputOf,
  inputFor,
  newChildFor,
  newExecutionFor,
  plainStartAt,
  unanswered,
  type ChildDraft,
  type StartedChild,
  type Waiter,
} from "./child-draft.ts";
import { Continuation } from "../continuation.ts";
import { randomOf, runIdOf, uuidOf, type Draw } from "./draws.ts";
import { JoinSetNames, RunJoinSet } from "./join-set.ts";
import { questionFor } from "./question.ts";
import type { RunState } from "../run-state.ts";
import { stepDraft, transactionDraft, type TaskDraft } from "./task-drafts.ts";
import { where } from "../step-context.ts";

/** Implements the methods of a workflow's `ctx`: see `WorkflowContext` for the contract of each. Refusals are thrown. */
export class RunContext implements WorkflowContext {
  readonly #run: RunState;
  readonly #sets = new JoinSetNames();
  readonly log: RunLog = runLog((level, message, data) => {
    const { id, definition, host, isOver, replay } = this.#run;
    if (isOver || !replay.isOver) return;
    const { step, attempt } = where.getStore() ?? {};
    const speaker = { id, function: definition.name, step, attempt };
    host.log(speaker, level, message, data);
  });

  constructor(run: RunState) {
    this.#run = run;
  }

  get id(): string {
    return this.#run.id;
  }

  get metadata(): Metadata {
    return Object.freeze(this.#run.locked.created.metadata);
  }

  get abortSignal(): AbortSignal {
    return this.#run.abort.signal;
  }

  // The interface has the types of the methods below. Everything is checked here anyway, since
  // JavaScript accepts any value.

  call(fn: unknown, input?: unknown, options?: CallOptions): Promise<never> {
    const site = callSite(this, "call", this.#run.open);
    const { promise } = this.#child(fn, input, options, { site });
    return promise as Promise<never>;
  }

  spawn(fn: unknown, input?: unknown, options?: CallOptions): Child<never> {
    const site = callSite(this, "spawn", this.#run.open);
    const { id, promise } = this.#child(fn, input, options, { site });
    return childHandle(this.#run, id, () => promise as Promise<never>);
  }

  start(fn: unknown, input?: unknown, options?: StartOptions): Promise<Detached> {
    const run = this.#run;
    const definition = definitionOf(fn, "the function to start");
    const {
      id = runIdOf(this.#draw(), run.now),
      startAt = "now",
      metadata = this.metadata,
      ...rest
    } = optionsOf<StartOptions>(options, [
      "id",
      "startAt",
      "deadline",
      "tags",
      "concurrencyKey",
      "metadata",
    ]);
    const created = newExecutionFor(run, {
      ...rest,
      id,
      startAt,
      metadata,
      input: inputFor(definition, input),
      function: definition.name,
      role: definition.kind,
      scheduledBy: run.id,
    });
    if (created === undefined) return unanswered();
    const plain = plainStartAt(startAt);
    const { inputHash } = created.created;
    const asked = shape("start", definition.name, startIntention(id, plain), inputHash);
    const call = takeCall(run, asked, hasInputOf(run, created));
    const promise = promiseOf(run, call, asked, false);
    request(
      run,
      call,
      {
        kind: "scheduled",
        execution: created.id,
        function: definition.name,
        inputHash,
        startAt: plain,
        call: call.number,
      } as never,
      created,
    );
    return promise as Promise<Detached>;
  }

  step(
    name: string,
    first: StepBody<unknown> | StepOptions,
    second?: StepBody<unknown>,
  ): Promise<never> {
    return this.#task(stepDraft(name, first, second)) as Promise<never>;
  }

  transaction<T>(
    name: string,
    first: (() => Tx<T>) | TransactionOptions,
    second?: () => Tx<T>,
  ): Promise<T> {
    return this.#task(transactionDraft(name, first, second)) as Promise<T>;
  }

  #task(draft: TaskDraft): Promise<unknown> {
    const run = this.#run;
    const asked = shape(draft.kind, draft.name);
    const call = takeCall(run, asked);
    const promise = promiseOf(run, call, asked, false);
    beginTask(run, call, { ...draft, call: call.number });
    return promise;
  }

  sleep(time: Duration): Promise<void> {
    return this.#sleep({ in: durationMs(time, "the time to sleep") });
  }

  sleepUntil(instant: Date | number): Promise<void> {
    const at = instantOfDate("the instant to sleep until", instant);
    return this.#sleep({ at });
  }

  #sleep(startAt: Exclude<StartAt, "now">): Promise<void> {
    const run = this.#run;
    const expiresAt = resolveStartAt(startAt, run.host.clock.now());
    const asked = shape("sleep", "", timeIntention(startAt));
    const call = takeCall(run, asked);
    const promise = promiseOf(run, call, asked, true);
    const joinSet = this.#ownSet(call);
    const delay = delayId(run.id, joinSet, 1);
    run.sources.set(answeringId(call, delay), { call: call.number });
    request(run, call, {
      kind: "delayRequested",
      joinSet,
      delay,
      expiresAt,
      startAt,
      call: call.number,
    });
    return promise as Promise<void>;
  }

  receive(signal: unknown, options?: { readonly timeout?: Duration }): Promise<never> {
    const run = this.#run;
    const { name } = signalOf(signal);
    const { timeout } = optionsOf<{ readonly timeout?: Duration }>(options, ["timeout"]);
    const timeoutMs = timeoutOf(timeout);
    const asked = shape("receive", name);
    const call = takeCall(run, asked);
    const kept = run.mailbox.take(name);
    if (kept !== undefined) return Promise.resolve(kept.value as never);
    const promise = promiseOf(run, call, asked, true);
    const event = call.recorded?.event;
    const expiresAt =
      event?.kind === "receiveRequested"
        ? event.expiresAt
        : timeoutMs === undefined
          ? null
          : run.host.clock.now() + timeoutMs;
    run.mailbox.wait({ call: call.number, signal: name, expiresAt });
    request(run, call, {
      kind: "receiveRequested",
      signal: name,
      expiresAt,
      call: call.number,
    });
    return promise as Promise<never>;
  }

  external(options?: ExternalOptions): External<never> {
    const run = this.#run;
    const { id, promise } = this.#newChild(questionFor(run, options), true);
    return { id, token: run.host.tokenOf(id), result: () => promise as Promise<never> };
  }

  joinSet<Out>(name?: string): JoinSet<Out> {
    assertOutsideStep();
    const set = this.#sets.next(this.#run.locked, name);
    const made = new RunJoinSet(this.#run, {
      spawn: (fn, input, options, index, source) => {
        const member = { set, index, source };
        return this.#child(fn, input, options, { member }).id;
      },
      handle: (id, result) => childHandle(this.#run, id, result),
    });
    return made as unknown as JoinSet<Out>;
  }

  now(): number {
    return this.#run.now;
  }

  random(): number {
    return randomOf(this.#draw());
  }

  uuid(): string {
    return uuidOf(this.#draw());
  }

  setProgress(value: unknown): void {
    assertOutsideStep();
    const run = this.#run;
    if (run.replay.isOver) return run.host.setProgress(run, value);
    // A crash may have kept the value from being written. Only the last such value is written.
    run.lateProgress = run.replay.mayBeNew(run.calls) ? { value } : undefined;
  }

  patched(id: string): boolean {
    return isPatched(this.#run, checkedText("A patch's id", id));
  }

  continueWith(input: unknown): never {
    assertOutsideStep();
    this.#run.isContinuing = true;
    return new Continuation(input) as never;
  }

  #draw(): Draw {
    assertOutsideStep();
    const run = this.#run;
    run.draws += 1;
    return { seed: run.locked.seed, calls: run.calls, draws: run.draws };
  }

  /** The set of one call. The continuation is part of its name, since passes number their calls alike. */
  #ownSet({ number }: Call): JoinSetId {
    return oneOffJoinSet(number, this.#run.locked.continuations);
  }

  #child(
    fn: unknown,
    input: unknown,
    options: CallOptions | undefined,
    waiter: Waiter,
  ): StartedChild {
    const definition = definitionOf(fn, "the function to call");
    const { name, kind } = definition;
    const rest = optionsOf<CallOptions>(options, ["deadline", "tags", "concurrencyKey"]);
    return this.#newChild(
      {
        ...rest,
        function: name,
        role: kind,
        input: inputFor(definition, input),
      },
      false,
      waiter,
    );
  }

  #newChild(draft: ChildDraft, endsWithRun: boolean, { member, site }: Waiter = {}): StartedChild {
    const run = this.#run;
    // The number is taken below, but the id needs it here.
    const joinSet = member?.set ?? oneOffJoinSet(run.calls + 1, run.locked.continuations);
    const own = childId(run.id, joinSet, member?.index ?? 1);
    const created = newChildFor(run, { ...draft, id: own });
    if (created === undefined) return { id: own, promise: unanswered() };
    const { inputHash } = created.created;
    const asked = shape("child", draft.function, childName(own), inputHash);
    // A question may be worded in another way than the recorded one.
    const hasInput = draft.role === "external" ? () => true : hasInputOf(run, created);
    const call = takeCall(run, asked, hasInput);
    const id = answeringId(call, own);
    const promise =
      member === undefined ? promiseOf(run, call, asked, endsWithRun, site) : Promise.resolve();
    run.sources.set(id, member?.source ?? { call: call.number });
    run.children.set(id, call.number);
    request(
      run,
      call,
      {
        kind: "childRequested",
        joinSet,
        child: own,
        function: created.created.function,
        inputHash,
        call: call.number,
      },
      created,
    );
    return { id, promise };
  }
}

function timeoutOf(timeout: Duration | undefined): number | undefined {
  return timeout === undefined ? undefined : durationMs(timeout, "timeout");
}
