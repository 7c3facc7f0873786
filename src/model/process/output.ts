import { unreachable } from "../errors.ts";
import { isFields } from "../trigger/payload-schema.ts";
import type { ExecutionResult } from "../execution/result.ts";
import { textOf } from "../trigger/selector.ts";

/** The possible ends of a process. */
export type ProcessEnd = "completed" | "failed" | "cancelled" | "abandoned";

/** The output of a process, which callers that wait for its end receive. */
export type ProcessOutput =
  | {
      readonly kind: "completed";
      readonly value: unknown;
      /** An instruction to the host, in the host's own form. */
      readonly control?: unknown;
    }
  | {
      readonly kind: "failed";
      /** The class of the failure, such as "timeout", for code that handles a class alike. */
      readonly class?: string;
      readonly code: string;
      readonly message: string;
      /** The failure as reported by its source. */
      readonly raw?: unknown;
      readonly control?: unknown;
    }
  | {
      readonly kind: "cancelled";
      readonly message: string;
      readonly raw?: unknown;
      readonly control?: unknown;
    }
  /** No worker could finish it: its owner is gone and it may not be run again. */
  | { readonly kind: "abandoned"; readonly message: string };

/** Returns the output of a terminal event from the value that its declaration selected. */
export function outputOf(end: ProcessEnd, selected: unknown): ProcessOutput {
  if (isOutput(selected) && selected.kind === end) return selected;
  switch (end) {
    case "completed":
      return { kind: "completed", value: selected };
    case "failed":
      return {
        kind: "failed",
        code: "process_failed",
        message: textOf(selected),
        raw: selected,
      };
    case "cancelled":
      return { kind: "cancelled", message: textOf(selected), raw: selected };
    case "abandoned":
      return { kind: "abandoned", message: textOf(selected) };
    default:
      return unreachable(end);
  }
}

/** The required and the optional fields of each kind of output. */
const shapes: Readonly<Record<ProcessEnd, { must: readonly string[]; may: readonly string[] }>> = {
  completed: { must: ["value"], may: ["control"] },
  failed: { must: ["code", "message"], may: ["class", "raw", "control"] },
  cancelled: { must: ["message"], may: ["raw", "control"] },
  abandoned: { must: ["message"], may: [] },
};

const texts: ReadonlySet<string> = new Set(["code", "message", "class"]);

/** True when a value has exactly the shape of an output. An optional field may be undefined. */
export function isOutput(value: unknown): value is ProcessOutput {
  if (!isFields(value)) return false;
  const { kind } = value;
  if (typeof kind !== "string" || !Object.hasOwn(shapes, kind)) return false;
  const { must, may } = shapes[kind as ProcessEnd];
  return (
    must.every((name) => Object.hasOwn(value, name)) &&
    Object.keys(value).every((name) => {
      if (name === "kind") return true;
      if (may.includes(name) && value[name] === undefined) return true;
      const isText = typeof value[name] === "string";
      return (must.includes(name) || may.includes(name)) && (isText || !texts.has(name));
    })
  );
}

/** Returns the output of a process that ran as an execution. */
export function outputOfResult(result: ExecutionResult): ProcessOutput {
  switch (result.kind) {
    case "completed":
      return { kind: "completed", value: result.value };
    case "failed": {
      const { code = "process_failed", message } = result.error;
      return { kind: "failed", code: String(code), message, raw: result.error };
    }
    case "cancelled":
      return { kind: "cancelled", message: result.reason ?? "cancelled" };
    case "timedOut":
      return {
        kind: "failed",
        code: "timed_out",
        message: "It was not done in time.",
      };
    default:
      return unreachable(result);
  }
}
