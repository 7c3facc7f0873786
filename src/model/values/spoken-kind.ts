import { safely } from "../safely.ts";

/** What a value is, for messages that must not repeat it. */
export function spokenKind(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  if (isList(value)) return "a list";
  switch (typeof value) {
    case "string":
      return "a text";
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

/** True for what has fields: not a list, and no function. */
export function isRecord(
  value: unknown,
): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !isList(value);
}

function isList(value: unknown): boolean {
  return safely(() => Array.isArray(value), false);
}
