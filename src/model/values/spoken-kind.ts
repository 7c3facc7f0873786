import { safely } from "../safely.ts";

/** The kind of a value, for messages that must not repeat it. */
export function spokenKind(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "undefined";
  if (isList(value)) return "an array";
  switch (typeof value) {
    case "string":
      return "a string";
    case "object":
      return "an object";
    case "number":
      return "a number";
    case "boolean":
      return "a boolean";
    default:
      return `a ${typeof value}`;
  }
}

/** True for an object with fields: not a list, and not a function. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !isList(value);
}

/**
 * Names an object that is not a plain container of fields, such as "a promise" or "a Date";
 * undefined for any other. Decided by its tag, so that objects of another realm are recognised.
 * An object with fields counts as plain whatever its tag: modules have a tag too, and classes may.
 * Throws the errors of the object's own code.
 */
export function spokenStranger(value: object): string | undefined {
  const { then } = value as { readonly then?: unknown };
  if (typeof then === "function") return "a promise";
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  if (tag === "Object" || Object.keys(value).length > 0) return undefined;
  if (!/^[A-Za-z]\w{0,40}$/.test(tag)) return "an object without fields";
  return `${/^[aeiou]/i.test(tag) ? "an" : "a"} ${tag}`;
}

export function isList(value: unknown): value is readonly unknown[] {
  return safely(() => Array.isArray(value), false);
}
