import { unreachable } from "../errors.ts";
import { isFields } from "./payload-schema.ts";
import { processInvalid, selectorUnmatched } from "../process/errors.ts";
import { pathText } from "../values/value-path.ts";
import type { PathStep } from "../values/value-path.ts";

/** The way in which a declaration takes a value out of a payload. */
export type PayloadSelector =
  | { readonly kind: "payload" }
  /** The value at a JSON pointer, such as `/result/url`. A missing value is an error. */
  | { readonly kind: "pointer"; readonly pointer: string }
  | { readonly kind: "constant"; readonly value: unknown }
  /** A text in which `{name}` is replaced by the value of that name. */
  | {
      readonly kind: "template";
      readonly text: string;
      readonly values: Readonly<Record<string, PayloadSelector>>;
    }
  /** True when a pointer leads to a value. */
  | { readonly kind: "present"; readonly pointer: string };

/** @throws HoldfastError `EVENT_SELECTOR_UNMATCHED` */
export function select(selector: PayloadSelector, payload: unknown): unknown {
  switch (selector.kind) {
    case "payload":
      return payload;
    case "constant":
      return selector.value;
    case "pointer": {
      const found = at(payload, selector.pointer);
      if (found === undefined) throw selectorUnmatched(selector.pointer);
      return found.value;
    }
    case "present":
      return at(payload, selector.pointer) !== undefined;
    case "template":
      return selector.text.replace(placeholder, (_, name: string) => {
        const own = selector.values[name];
        return own === undefined ? "" : textOf(select(own, payload));
      });
    default:
      return unreachable(selector);
  }
}

const placeholder = /\{([A-Za-z0-9_]+)\}/g;

/** Returns the value at a JSON pointer, in a box, since the value itself may be undefined. */
function at(payload: unknown, pointer: string): { readonly value: unknown } | undefined {
  let value = payload;
  if (pointer === "") return { value };
  for (const raw of pointer.slice(1).split("/")) {
    const step = raw.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(value)) {
      if (!/^(0|[1-9]\d*)$/.test(step) || Number(step) >= value.length) return undefined;
      value = (value as readonly unknown[])[Number(step)];
    } else if (isFields(value) && Object.hasOwn(value, step)) value = value[step];
    else return undefined;
  }
  return { value };
}

/** Returns a value as text: text unchanged, everything else as JSON. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "bigint") return String(value);
  return (
    JSON.stringify(value, (_, part: unknown) => (typeof part === "bigint" ? String(part) : part)) ??
    ""
  );
}

/** Returns false for null, false and empty values. Every number is true, also 0. */
export function isTruthy(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === "") return false;
  if (Array.isArray(value)) return value.length > 0;
  return isFields(value) ? Object.keys(value).length > 0 : true;
}

const nestingMax = 16;

/** @throws HoldfastError `PROCESS_INVALID` */
export function checkedSelector(
  given: unknown,
  path: readonly PathStep[],
  depth = 0,
): PayloadSelector {
  const wrong = (why: string): Error => processInvalid(pathText(path), why);
  if (!isFields(given)) throw wrong("is not a selector.");
  if (depth > nestingMax) throw wrong(`is nested deeper than ${nestingMax}.`);
  switch (given["kind"]) {
    case "payload":
    case "constant":
      return given as unknown as PayloadSelector;
    case "pointer":
    case "present": {
      const { pointer } = given;
      if (typeof pointer !== "string" || !/^(\/|$)/.test(pointer))
        throw wrong('needs a JSON pointer, such as "/result/url".');
      return given as unknown as PayloadSelector;
    }
    case "template": {
      const { text, values } = given;
      if (typeof text !== "string" || !isFields(values))
        throw wrong("is a template without text or values.");
      for (const [name, own] of Object.entries(values))
        checkedSelector(own, [...path, "values", name], depth + 1);
      for (const [, name = ""] of text.matchAll(placeholder))
        if (!Object.hasOwn(values, name))
          throw wrong(`has no value for the placeholder {${name}}.`);
      return given as unknown as PayloadSelector;
    }
    default:
      throw wrong("has an unknown kind. Use payload, pointer, constant, template or present.");
  }
}
