import { eventsInvalid } from "../../../model/execution/errors.ts";
import { splitToParts, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { draftOf } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import type { Tx } from "../../../sql/operation.ts";
import type { ExecutionContext } from "../context.ts";
import { lockNew } from "../lock/lock.ts";
import type { LockedExecution } from "../lock/locked.ts";
import { lockNames, lockTerms, type LockOptions, type LockTerms } from "../lock/terms.ts";
import {
  createUnder,
  draftNames,
  newExecution,
  type ExecutionDraft,
  type NewExecution,
} from "./create.ts";

/** An execution to create with an append. */
export interface ChildDraft extends ExecutionDraft {
  /** Locks it in the same transaction, for the worker that appends. */
  readonly locked?: Omit<LockOptions, keyof WaitOptions>;
}

export interface NewChild extends NewExecution {
  readonly lock?: LockTerms;
}

const childNames: readonly (keyof ChildDraft)[] = [...draftNames, "locked"];

/** @throws HoldfastError as creating and locking do. */
export function newChild(context: ExecutionContext, given: ChildDraft, at: number): NewChild {
  const { locked, ...draft } = draftOf("the execution", given, childNames);
  const execution = newExecution(context, draft, at);
  if (locked === undefined) return execution;
  const terms = draftOf("locked", locked, lockNames);
  return { ...execution, lock: lockTerms(context, terms, at) };
}

/** Creates the children of an execution whose row the transaction has locked. @throws HoldfastError `EVENTS_INVALID` */
export function* createChildren(
  context: ExecutionContext,
  parent: { readonly id: ExecutionId; readonly key: number },
  children: readonly NewChild[],
  locked: LockedExecution[],
): Tx<void> {
  for (const child of children) {
    const parts = splitToParts(child.id);
    const { existed } = yield* createUnder(parts === undefined ? null : parent.key, child, {
      isLocked: child.lock !== undefined,
    });
    // An existing child that this append did not create: the log would record a creation that did
    // not happen.
    if (existed && parts !== undefined)
      throw eventsInvalid(parent.id, "childExists", `its child ${child.id} already exists.`);
    if (!existed && child.lock !== undefined)
      locked.push(yield* lockNew(context, child.id, child.lock));
  }
}

/** Locks the runs started beside an execution. */
export function* lockStarted(
  context: ExecutionContext,
  started: readonly NewChild[],
  locked: LockedExecution[],
): Tx<void> {
  for (const { id, lock } of started)
    if (lock !== undefined) locked.push(yield* lockNew(context, id, lock));
}
