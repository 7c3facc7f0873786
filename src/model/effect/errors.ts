import type { EffectLoss } from "./effect.ts";
import { HoldfastError } from "../errors.ts";
import { excerpt } from "../values/excerpt.ts";

/** The errors of effects, collected here so that each has one wording. */

/** An effect's name in errors. */
export interface EffectNames {
  readonly scopeKind: string;
  readonly scope: string;
  readonly replayKey: string;
  readonly attempt: number;
}

/** Returns a title such as `effect "call-1" of turn "t7"`. */
export function effectTitle(names: EffectNames): string {
  const attempt = names.attempt === 1 ? "" : `, attempt ${names.attempt},`;
  return `effect ${excerpt(names.replayKey)}${attempt} of ${names.scopeKind} ${excerpt(names.scope)}`;
}

export function effectInvalid(
  path: string,
  expected: string,
  subject: string = "effect",
): HoldfastError {
  return new HoldfastError(
    "EFFECT_INVALID",
    `${path} of this ${subject} must be ${expected}. Nothing was run or changed.`,
    { path },
  );
}

export function effectScopeInvalid(path: string, expected: string): HoldfastError {
  return new HoldfastError(
    "EFFECT_SCOPE_INVALID",
    `${path} must be ${expected}. Write a scope as { kind: "turn", session: "chat-7", id: "t1" }, and leave session out for a scope outside sessions.`,
    { path },
  );
}

export function effectConflict(
  names: EffectNames,
  hashes: { readonly recorded: string; readonly given: string },
  path: string,
): HoldfastError {
  return new HoldfastError(
    "EFFECT_CONFLICT",
    `The ${effectTitle(names)} was recorded with another envelope: the first difference is at ${path}. Nothing was run or changed. ` +
      "Give each call a key of its own, and make the same calls with the same input when a scope is retried.",
    { ...names, path, recordedHash: hashes.recorded, givenHash: hashes.given },
  );
}

export function effectNotRecorded(names: EffectNames): HoldfastError {
  return new HoldfastError(
    "EFFECT_NOT_RECORDED",
    `The ${effectTitle(names)} is not recorded, and strict replay runs nothing. ` +
      "Execute it outside of strict replay, or check scope and key.",
    { ...names },
  );
}

export function effectUnfinished(names: EffectNames): HoldfastError {
  return new HoldfastError(
    "EFFECT_UNFINISHED",
    `The ${effectTitle(names)} was started and is not settled, and strict replay runs nothing. ` +
      "Wait for the worker that runs it, or execute it outside of strict replay.",
    { ...names },
  );
}

const whatHappened: Readonly<Record<EffectLoss, string>> = {
  gone: "is no longer recorded",
  released: "was released",
  overtaken: "was taken over by another worker",
  expired: "was held for longer than its lease",
};

export function effectLeaseLost(
  names: EffectNames,
  reason: EffectLoss,
  options?: { readonly cause?: unknown },
): HoldfastError {
  return new HoldfastError(
    "EFFECT_LEASE_LOST",
    `The ${effectTitle(names)} ${whatHappened[reason]}, so its outcome here was not recorded. ` +
      "Call it again: the call returns the recorded outcome or runs the effect again. If this recurs, ask for a longer lease.",
    { ...names, reason },
    options,
  );
}

export function effectResultUnstorable(names: EffectNames, cause: unknown): HoldfastError {
  const { path, code } = placeOf(cause);
  return new HoldfastError(
    "EFFECT_RESULT_UNSTORABLE",
    `The ${effectTitle(names)} was run, but its result cannot be stored${path === undefined ? "" : ` (at ${path})`}: see cause. ` +
      "It is not recorded, and the next call runs the effect again. Return a value that can be stored.",
    { ...names, ...(path !== undefined && { path }), reason: code },
    { cause },
  );
}

function placeOf(cause: unknown): {
  readonly path: string | undefined;
  readonly code: unknown;
} {
  const { details, code } = Object(cause) as {
    readonly details?: { readonly path?: unknown };
    readonly code?: unknown;
  };
  const path = details?.path;
  return { path: typeof path === "string" ? path : undefined, code };
}

export function effectResultRefused(
  names: EffectNames,
  source: "returned" | "recorded",
): HoldfastError {
  return new HoldfastError(
    "EFFECT_RESULT_REFUSED",
    source === "returned"
      ? `The ${effectTitle(names)} returned a value that its caller does not accept. It is not recorded, and the next call runs the effect again.`
      : `The ${effectTitle(names)} is recorded with a value that its caller does not accept. It stays unchanged; accept it, or use another key.`,
    { ...names, source },
  );
}
