import type { OpenCalls } from "./open-calls.ts";
import type { WorkflowContext } from "../../definition/workflow-context.ts";

/** The place at which the code of a run called `ctx`; formatted only when it is shown. */
export interface CallSite {
  readonly stack?: string;
}

const framesMax = 5;
/** The most recorded places of waiting calls. More calls come from a loop, whose line is known by then. */
const sitesMax = 1_000;

/**
 * The lines of the user's code above a method of `ctx`. They are taken only for children:
 * taking them costs about 3 µs, too much for a step.
 */
export function callSite(
  ctx: WorkflowContext,
  method: "call" | "spawn",
  open: OpenCalls,
): CallSite | undefined {
  if (open.size >= sitesMax) return undefined;
  const site: CallSite = {};
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = framesMax;
  Error.captureStackTrace(site, ctx[method]);
  Error.stackTraceLimit = stackTraceLimit;
  return site;
}

/** The error with the stack of the call that it ends: its own stack would show the delivery. */
export function withSite<E extends Error>(error: E, site: CallSite | undefined): E {
  const lines = site?.stack?.split("\n").filter((line) => /^\s+at /.test(line));
  if (lines !== undefined && lines.length > 0)
    Object.defineProperty(error, "stack", {
      value: [`${error.name}: ${error.message}`, ...lines].join("\n"),
      writable: true,
      configurable: true,
    });
  return error;
}
