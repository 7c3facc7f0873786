import { HoldfastError } from "../errors.ts";
import { excerpt } from "../values/excerpt.ts";

/** The errors of triggers, in one place so that each has one wording. */

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
    of === undefined ? "This subscription cannot be made" : "This occurrence cannot be recorded";
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
    `There is a subscription ${excerpt(key)} with another ${part}; it was left as it is. ` +
      (part === "isEnabled"
        ? "Leave isEnabled out, or change that one with enable or disable."
        : "Use another key, or change that one with revise."),
    { key, part },
  );
}

export function subscriptionNotFound(key: string): HoldfastError {
  return new HoldfastError(
    "SUBSCRIPTION_NOT_FOUND",
    `There is no subscription ${excerpt(key)} of this registrant. Check the key and the session; it may have been deleted.`,
    { key },
  );
}

export function subscriptionChanged(key: string, expected: number, actual: number): HoldfastError {
  return new HoldfastError(
    "SUBSCRIPTION_CHANGED",
    `Subscription ${excerpt(key)} is at revision ${actual}, not ${expected}: it was changed meanwhile. ` +
      "Nothing was changed. Read it again and decide anew.",
    { key, expected, actual },
  );
}

export function occurrenceConflict(key: string, part: string): HoldfastError {
  return new HoldfastError(
    "OCCURRENCE_CONFLICT",
    `The occurrence ${excerpt(key)} was recorded before with another ${part}; nothing was changed. ` +
      "Record it again exactly as it was, or give what happened a key of its own.",
    { key, part },
  );
}

export function occurrenceNotFound(key: string): HoldfastError {
  return new HoldfastError(
    "OCCURRENCE_NOT_FOUND",
    `There is no occurrence ${excerpt(key)}. Check the key; an old one may have been removed.`,
    { key },
  );
}

export function occurrenceRemoved(key: string): HoldfastError {
  return new HoldfastError(
    "TRANSACTION_CONFLICT",
    `The occurrence ${excerpt(key)} is being removed at this very moment. Try again.`,
    { key },
  );
}
