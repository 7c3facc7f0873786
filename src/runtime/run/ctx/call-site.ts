import type { WorkflowContext } from "../../definition/workflow-context.ts";

/** Where the code of a run called `ctx`; written out only when somebody is shown it. */
export interface CallSite {
  readonly stack?: string;
}

const framesMax = 5;

/**
 * The lines of the user's code above a method of `ctx`. Taken for children
 * alone: it costs about 3 µs, which a step must not.
 */
export function callSite(ctx: WorkflowContext, method: "call" | "spawn"): CallSite {
  const site: CallSite = {};
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = framesMax;
  Error.captureStackTrace(site, ctx[method]);
  Error.stackTraceLimit = stackTraceLimit;
  return site;
}

/** The error with the stack of the call that it ends: its own would show where it was delivered. */
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
