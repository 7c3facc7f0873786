import { isError } from "./stored-error.ts";

/** The kinds of objects that can be stored. */
export type ObjectKind =
  | { readonly kind: "array"; readonly value: readonly unknown[] }
  | { readonly kind: "plain"; readonly value: object }
  | { readonly kind: "date"; readonly value: Date }
  | { readonly kind: "bytes"; readonly value: Uint8Array }
  | { readonly kind: "map"; readonly value: ReadonlyMap<unknown, unknown> }
  | { readonly kind: "set"; readonly value: ReadonlySet<unknown> }
  | { readonly kind: "error"; readonly value: Error };

/** Returns the kind of an object; undefined when it cannot be stored. */
export function objectKind(value: object): ObjectKind | undefined {
  if (Array.isArray(value)) return { kind: "array", value };
  if (isPlainObject(value)) return { kind: "plain", value };
  // Accepts subclasses too: fake timers replace Date with one.
  if (value instanceof Date) return { kind: "date", value };
  if (isBytes(value)) return { kind: "bytes", value };
  if (isExactly(value, Map)) return { kind: "map", value };
  if (isExactly(value, Set)) return { kind: "set", value };
  if (isError(value)) return { kind: "error", value };
  return undefined;
}

/** True also for objects of another realm, which has its own Object.prototype. */
function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** True also for Buffers, and across realms: file contents arrive as these. */
function isBytes(value: object): value is Uint8Array {
  return (
    ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === "[object Uint8Array]"
  );
}

/** Excludes subclasses, whose own fields and behaviour would be lost silently. */
function isExactly<T extends object>(value: object, Class: { readonly prototype: T }): value is T {
  return Object.getPrototypeOf(value) === Class.prototype;
}
