import { unreachable } from "../../../model/errors.ts";
import { parseOwnExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import type { JoinSetId } from "../../../model/ids/join-set-id.ts";
import { durationMs } from "../../../model/time/durations.ts";
import type { StartAt } from "../../../model/time/instants.ts";
import type {
  ExecutionDraft,
  NewExecution,
  RequestedChild,
} from "../../../stores/execution/log/create.ts";
import type { Definition } from "../../definition/definitions.ts";
import { isOfTheCodec, ofSubject } from "../../failures.ts";
import { validatedNow } from "../../definition/schema.ts";
import type { Child } from "../../definition/workflow-context.ts";
import { broke } from "../broken.ts";
import type { CallSite } from "./call-site.ts";
import type { HasInput } from "../replay/call-shape.ts";
import type { RunState, Source } from "../run-state.ts";

/** The workflow's part of a request for a child. */
export type ChildDraft = Omit<RequestedChild, "id" | "metadata">;

/** The receiver of a child's result: a member of a set, or else the call, with its line. */
export interface Waiter {
  readonly member?: Member;
  readonly site?: CallSite | undefined;
}

/** The place of a child in a set of the user. */
interface Member {
  readonly set: JoinSetId;
  readonly index: number;
  readonly source: Source;
}

export interface StartedChild {
  readonly id: ExecutionId;
  readonly promise: Promise<unknown>;
}

/**
 * The schema's output for an input. A changed schema counts as changed calling code.
 * @throws HoldfastError `INPUT_INVALID`
 */
export function inputFor({ name, schema }: Definition, input: unknown): unknown {
  return validatedNow(`The input of ${name}`, schema, input);
}

/**
 * Makes an independent run that a call starts. Undefined when a payload codec fails, which the
 * code could not handle. The call then has its number and is never answered, and the run is
 * parked.
 */
export function newExecutionFor(run: RunState, draft: ExecutionDraft): NewExecution | undefined {
  // Children are named by their parent's call.
  return made(run, draft.function, () => {
    if (draft.id !== undefined) parseOwnExecutionId(draft.id);
    return run.host.newExecution(draft);
  });
}

/**
 * The same for a child, which inherits the metadata of its parent. A run that retries another
 * continues with the keys of that run's child.
 */
export function newChildFor(
  run: RunState,
  draft: Omit<RequestedChild, "metadata">,
): NewExecution | undefined {
  const { keysOf, metadata } = run.locked.created;
  const child = made(run, draft.function, () => run.host.newChild({ ...draft, metadata }));
  if (child === undefined || keysOf === undefined) return child;
  const ofChild = `${keysOf}${draft.id.slice(run.id.length)}` as ExecutionId;
  return { ...child, created: { ...child.created, keysOf: ofChild } };
}

/** Compares a recorded hash with the input of a call: a run may be older than the payload codec. */
export function hasInputOf({ host: { values } }: RunState, { created }: NewExecution): HasInput {
  return (recorded) => values.agrees(values.readValue(created.input), recorded);
}

function made(run: RunState, name: string, make: () => NewExecution): NewExecution | undefined {
  try {
    return make();
  } catch (error) {
    if (!isOfTheCodec(error)) throw ofSubject(error, `the input of ${name}`);
    run.calls += 1;
    broke(run, error);
    return undefined;
  }
}

/** The promise of a call that is never answered. */
export function unanswered(): Promise<never> {
  return new Promise(() => undefined);
}

/** The recorded form of a start time: numbers, in whatever form the code gave it. */
export function plainStartAt(startAt: StartAt): StartAt {
  if (startAt === "now") return startAt;
  if ("in" in startAt) return { in: durationMs(startAt.in, "startAt") };
  if ("at" in startAt) return { at: Number(startAt.at) };
  return unreachable(startAt);
}

/** Makes the result of `spawn`. The handle can ask the child to end while it has not ended. */
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
