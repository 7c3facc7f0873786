import { unreachable } from "../../../model/errors.ts";
import { parseOwnExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import type { JoinSetId } from "../../../model/ids/join-set-id.ts";
import { durationMs } from "../../../model/time/durations.ts";
import type { StartAt } from "../../../model/time/instants.ts";
import type { ExecutionDraft, NewExecution } from "../../../stores/execution/log/create.ts";
import type { Definition } from "../../definition/definitions.ts";
import { isOfTheCodec, ofSubject } from "../../failures.ts";
import { validatedNow } from "../../definition/schema.ts";
import type { CallOptions, Child } from "../../definition/workflow-context.ts";
import { broke } from "../broken.ts";
import type { CallSite } from "./call-site.ts";
import type { RunState, Source } from "../run-state.ts";

/** What a workflow says of a child. */
export interface ChildDraft extends CallOptions {
  readonly function: string;
  readonly role: "workflow" | "activity" | "external";
  readonly input: unknown;
}

/** Who is given a child's result: a member of a set by that, any other by its call, with the line of it. */
export interface Waiter {
  readonly member?: Member;
  readonly site?: CallSite;
}

/** The place of a child in a set of the user's. */
interface Member {
  readonly set: JoinSetId;
  readonly index: number;
  readonly source: Source;
}

export interface StartedChild {
  readonly id: ExecutionId;
  readonly promise: Promise<unknown>;
}

/** What its schema makes of an input. A changed schema is a change of the code that calls. @throws HoldfastError `INPUT_INVALID` */
export function inputFor({ name, schema }: Definition, input: unknown): unknown {
  return validatedNow(`The input of ${name}`, schema, input);
}

/**
 * What is to be created for a call. Undefined when a payload codec is out of
 * order, which is nothing that the code could deal with: the call has its
 * number and is never answered, and the run is parked.
 */
export function newExecutionFor(run: RunState, draft: ExecutionDraft): NewExecution | undefined {
  try {
    // A run of its own, not a child: those are named by their parent's call.
    if (draft.scheduledBy !== undefined && draft.id !== undefined) parseOwnExecutionId(draft.id);
    return run.host.newExecution(draft);
  } catch (error) {
    if (!isOfTheCodec(error)) throw ofSubject(error, `the input of ${draft.function}`);
    run.calls += 1;
    broke(run, error);
    return undefined;
  }
}

/** Of a call that is never answered. */
export function unanswered(): Promise<never> {
  return new Promise(() => undefined);
}

/** As it is recorded: numbers, whatever the code gave. */
export function plainStartAt(startAt: StartAt): StartAt {
  if (startAt === "now") return startAt;
  if ("in" in startAt) return { in: durationMs(startAt.in, "startAt") };
  if ("at" in startAt) return { at: Number(startAt.at) };
  return unreachable(startAt);
}

/** What `spawn` gives: the child may be asked to end while it has not. */
export function childHandle<T>(run: RunState, id: ExecutionId, result: () => Promise<T>): Child<T> {
  return {
    id,
    result,
    cancel() {
      if (!run.children.has(id)) return;
      run.childrenToCancel = [...run.childrenToCancel, id];
      run.again();
    },
  };
}
