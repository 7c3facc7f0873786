import { unreachable } from "../errors.ts";
import { isFields } from "../trigger/payload-schema.ts";
import type { ExecutionResult } from "../execution/result.ts";
import { textOf } from "../trigger/selector.ts";

/** How a process may end. */
export type ProcessEnd = "completed" | "failed" | "cancelled" | "abandoned";

/** What a process ended with: what those who wait for its end get. */
export type ProcessOutput =
  | { readonly kind: "completed"; readonly value: unknown }
  | {
      readonly kind: "failed";
      readonly code: string;
      readonly message: string;
      readonly raw?: unknown;
    }
  | {
      readonly kind: "cancelled";
      readonly message: string;
      readonly raw?: unknown;
    }
  /** Nobody could finish it: its owner is gone and it may not be run again. */
  | { readonly kind: "abandoned"; readonly message: string };

/** The output that a terminal event gives, from what its declaration selected. */
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

/** Whether a value has the shape of an output, and nothing more. */
export function isOutput(value: unknown): value is ProcessOutput {
  if (!isFields(value)) return false;
  const { kind, message, code } = value;
  const names = Object.keys(value).filter((name) => name !== "raw");
  switch (kind) {
    case "completed":
      return Object.hasOwn(value, "value") && names.length === 2 && !("raw" in value);
    case "failed":
      return typeof message === "string" && typeof code === "string" && names.length === 3;
    case "cancelled":
      return typeof message === "string" && names.length === 2;
    case "abandoned":
      return typeof message === "string" && names.length === 2 && !("raw" in value);
    default:
      return false;
  }
}

/** The output of a process that ran as an execution. */
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
