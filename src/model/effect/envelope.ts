import { notSerializable } from "../values/not-serializable.ts";
import { pathText } from "../values/value-path.ts";
import type { PathStep } from "../values/value-path.ts";

/**
 * The request of an effect: the name of a kind, and an input with everything that the outcome
 * depends on.
 */
export interface EffectEnvelope {
  readonly kind: string;
  readonly input: unknown;
}

/**
 * Refuses bytes in an envelope, which is compared and kept for the lifetime of its scope.
 *
 * @throws HoldfastError `NOT_SERIALIZABLE` naming the place of the first bytes
 */
export function refuseBytes(value: unknown): void {
  const path = pathOfBytes(value, []);
  if (path !== undefined)
    throw notSerializable("bytes", "Put them into an attachment and pass its id.", path);
}

function pathOfBytes(value: unknown, path: readonly PathStep[]): readonly PathStep[] | undefined {
  if (value instanceof Uint8Array) return path;
  for (const [step, part] of partsOf(value)) {
    const found = pathOfBytes(part, [...path, step]);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the first difference of two envelopes. A different kind is reported before any input. */
export function envelopeDifference(a: unknown, b: unknown): string | undefined {
  const kindOf = (envelope: unknown): unknown =>
    (Object(envelope) as { readonly kind?: unknown }).kind;
  return kindOf(a) === kindOf(b) ? differenceOf(a, b) : "$.kind";
}

/**
 * Returns the path of the first difference between two stored values, or undefined when they are
 * equal. Both went through the codec, so values that are stored alike are equal here. The order of
 * an object's keys does not matter; the order of a Map or Set does.
 */
export function differenceOf(a: unknown, b: unknown): string | undefined {
  const path = firstDifference(a, b, []);
  return path === undefined ? undefined : pathText(path);
}

function firstDifference(
  a: unknown,
  b: unknown,
  path: readonly PathStep[],
): readonly PathStep[] | undefined {
  if (Object.is(a, b)) return undefined;
  if (shapeOf(a) !== shapeOf(b)) return path;
  if (!isContainer(a) || !isContainer(b)) return textOf(a) === textOf(b) ? undefined : path;
  const left = new Map(partsOf(a).map((part) => [stepName(part[0]), part]));
  const right = new Map(partsOf(b).map((part) => [stepName(part[0]), part]));
  const names = [...new Set([...left.keys(), ...right.keys()])];
  if (!Array.isArray(a)) names.sort();
  for (const name of names) {
    const own = left.get(name);
    const other = right.get(name);
    const step = (own ?? other)?.[0];
    if (step === undefined) continue;
    const inner = [...path, step];
    if (own === undefined || other === undefined) return inner;
    const found = firstDifference(own[1], other[1], inner);
    if (found !== undefined) return found;
  }
  return undefined;
}

type Part = readonly [step: PathStep, value: unknown];

/** Returns the parts one step further in: items, fields, or the keys and values of a Map or Set. */
function partsOf(value: unknown): readonly Part[] {
  if (Array.isArray(value)) return value.map((item, at) => [at, item]);
  if (value instanceof Map)
    return [...value.entries()].flatMap(([key, item], index): Part[] => [
      [{ of: "keys", index }, key],
      [{ of: "values", index }, item],
    ]);
  if (value instanceof Set) return [...value].map((item, index) => [{ of: "values", index }, item]);
  return isContainer(value) ? Object.entries(value) : [];
}

/** Names sort by number within a Map or Set, and by text within an object. */
function stepName(step: PathStep): string {
  if (typeof step === "object") return `${String(step.index).padStart(16, "0")}.${step.of}`;
  return typeof step === "number" ? `[${step}]` : `.${step}`;
}

function isContainer(value: unknown): value is object {
  return (
    Array.isArray(value) ||
    value instanceof Map ||
    value instanceof Set ||
    shapeOf(value) === "[object Object]"
  );
}

function shapeOf(value: unknown): string {
  return Array.isArray(value) ? "array" : Object.prototype.toString.call(value);
}

/** Returns a text for a value without parts: a Date, an error, bytes, or a non-object. */
function textOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Error) {
    const { name, message } = value;
    const { code } = value as { readonly code?: unknown };
    return JSON.stringify([name, message, String(code), textOf(value.cause)]);
  }
  return `${typeof value} ${String(value)}`;
}
