import { HoldfastError } from "../errors.ts";
import type { ErrorDetails } from "../errors.ts";
import { excerpt } from "../values/excerpt.ts";

/** The errors of sessions, collected here so that each has one wording. */

export function turnInvalid(why: string, details: ErrorDetails = {}): HoldfastError {
  return new HoldfastError(
    "TURN_INVALID",
    `This turn cannot be committed: ${why} Nothing was changed.`,
    details,
  );
}

const whyLost = {
  missing: "the call has neither a lease nor the transaction of a run",
  closed: "its open turn is not that of this run",
  leased: "another holder has its lease",
} as const;

/** The error for a run that does not take the open turn of a session, or must not now. */
export function turnLost(session: string, reason: keyof typeof whyLost): HoldfastError {
  return new HoldfastError(
    "LEASE_LOST",
    `Session ${excerpt(session)}: ${whyLost[reason]}, so nothing was changed. ` +
      (reason === "leased"
        ? "Try again once the lease is free."
        : "Only the holder of the lease, or a transaction of the run that takes the open turn, may do this."),
    { session, reason },
  );
}

export function turnConflict(session: string, turn: string, part: string): HoldfastError {
  return new HoldfastError(
    "TURN_CONFLICT",
    `Turn ${excerpt(turn)} of session ${excerpt(session)} was already committed with other ${part}; nothing was changed. ` +
      "Repeat a commit with exactly the same content, or use another turn id.",
    { session, turn, part },
  );
}

export function revisionConflict(session: string, expected: number, actual: number): HoldfastError {
  return new HoldfastError(
    "REVISION_CONFLICT",
    `Session ${excerpt(session)} is at revision ${actual}, not ${expected}: another commit changed it. ` +
      "Nothing was changed. Read the session again and decide again.",
    { session, expected, actual },
  );
}

export function sessionMismatch(own: string, attempted: string): HoldfastError {
  return new HoldfastError(
    "SESSION_MISMATCH",
    `A handle of session ${excerpt(own)} cannot commit to session ${excerpt(attempted)}; nothing was changed. ` +
      "Open the other session and commit with its handle.",
    { session: own, attempted },
  );
}

export function sessionExists(id: string): HoldfastError {
  return new HoldfastError(
    "SESSION_EXISTS",
    `Session ${excerpt(id)} already exists; it was left unchanged. Use another id, or delete that session first.`,
    { id },
  );
}

export function nodeExists(session: string, id: string): HoldfastError {
  return new HoldfastError(
    "NODE_EXISTS",
    `Session ${excerpt(session)} already has a node ${excerpt(id)}; nothing was changed. Nodes are never replaced: use another id, or none.`,
    { session, id },
  );
}

export function nodeParentUnknown(session: string, parent: string, ordinal: number): HoldfastError {
  return new HoldfastError(
    "NODE_PARENT_UNKNOWN",
    `Node ${ordinal} of this turn has the parent ${excerpt(parent)}, which session ${excerpt(session)} does not show. ` +
      "Nothing was changed. Name a node that exists, or one earlier in the same turn.",
    { session, parent, ordinal },
  );
}

export function nodeNotFound(session: string, id: string): HoldfastError {
  return new HoldfastError(
    "NODE_NOT_FOUND",
    `Session ${excerpt(session)} shows no node ${excerpt(id)}. Check the id; it may have been removed.`,
    { session, id },
  );
}

export function usageOverflow(source: string, model: string, kind: string): HoldfastError {
  return new HoldfastError(
    "USAGE_OVERFLOW",
    `The sum of ${kind} of ${excerpt(source)} for ${excerpt(model)} exceeds 2^53 − 1 and cannot be computed exactly. ` +
      "A turn was committed with an impossible token count: look for it in holdfast_session_usage.",
    { source, model, kind },
  );
}

export function attachmentsGone(session: string, ids: readonly string[]): HoldfastError {
  return new HoldfastError(
    "ATTACHMENT_NOT_FOUND",
    `This turn refers to attachments that session ${excerpt(session)} does not have, or whose bytes are gone: ${ids.slice(0, 3).join(", ")}${ids.length > 3 ? ` and ${ids.length - 3} more` : ""}. ` +
      "Nothing was changed. Put them again and repeat the commit; a sweep removes attachments that no commit refers to in time.",
    { part: "attachments", session, ids },
  );
}
