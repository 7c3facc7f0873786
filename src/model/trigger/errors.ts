import { HoldfastError } from "../errors.ts";
import { excerpt } from "../values/excerpt.ts";

/** The errors of triggers, collected here so that each has one wording. */

export function subscriptionInvalid(
  path: string,
  why: string,
  {
    max,
    cause,
    of,
  }: {
    readonly max?: number;
    readonly cause?: unknown;
    readonly of?: "occurrence" | undefined;
  } = {},
): HoldfastError {
  const what =
    of === undefined ? "This subscription cannot be created" : "This occurrence cannot be recorded";
  return new HoldfastError(
    "SUBSCRIPTION_INVALID",
    `${what}: ${path} ${why} Nothing was changed.`,
    { path, ...(max !== undefined && { max }) },
    cause === undefined ? undefined : { cause },
  );
}

export function subscriptionExists(key: string, part: string): HoldfastError {
  return new HoldfastError(
    "SUBSCRIPTION_EXISTS",
    `Subscription ${excerpt(key)} already exists with another ${part}; it was left unchanged. ` +
      (part === "isEnabled"
        ? "Leave isEnabled out, or change it with enable or disable."
        : "Use another key, or change it with revise."),
    { key, part },
  );
}

export function subscriptionNotFound(key: string): HoldfastError {
  return new HoldfastError(
    "SUBSCRIPTION_NOT_FOUND",
    `This registrant has no subscription ${excerpt(key)}. Check the key and the session; it may have been deleted.`,
    { key },
  );
}

export function subscriptionChanged(key: string, expected: number, actual: number): HoldfastError {
  return new HoldfastError(
    "SUBSCRIPTION_CHANGED",
    `Subscription ${excerpt(key)} is at revision ${actual}, not ${expected}: another caller changed it. ` +
      "Nothing was changed. Read it again and decide again.",
    { key, expected, actual },
  );
}

export function occurrenceConflict(key: string, part: string): HoldfastError {
  return new HoldfastError(
    "OCCURRENCE_CONFLICT",
    `The occurrence ${excerpt(key)} is already recorded with another ${part}; nothing was changed. ` +
      "Record it again with exactly the same content, or use another key.",
    { key, part },
  );
}

export function occurrenceNotFound(key: string): HoldfastError {
  return new HoldfastError(
    "OCCURRENCE_NOT_FOUND",
    `Occurrence ${excerpt(key)} does not exist. Check the key; an old occurrence may have been removed.`,
    { key },
  );
}

export function occurrenceRemoved(key: string): HoldfastError {
  return new HoldfastError(
    "TRANSACTION_CONFLICT",
    `The occurrence ${excerpt(key)} is being removed right now. Retry the call.`,
    { key },
  );
}
