import { isFinalCode } from "../model/errors.ts";

/**
 * An event that the runtime or the code of a run reports, for logs. `message` is for people.
 * `details` has ids and names: for a run its `id` and `function`, with `step` and `attempt` if
 * there are any. A report of a failure has a `kind`, and an `error` with name and message.
 */
export interface RuntimeEvent {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** The source of the event: the code of a run, by `ctx.log`, or the runtime. */
  readonly source: "code" | "runtime";
  /** The second argument of a `ctx.log` call. The runtime never reports values. */
  readonly data?: unknown;
}

/** An event of the runtime itself. */
export type Notice = Omit<RuntimeEvent, "source" | "data">;

/** True if the event reports that a part of the runtime has stopped for good. Only opening the database again helps. */
export function tellsOfStop(event: RuntimeEvent): boolean {
  const { level, source, details } = event;
  return (
    level === "error" &&
    source === "runtime" &&
    details["id"] === undefined &&
    isFinalCode(details["code"])
  );
}

const toldByResults: ReadonlySet<unknown> = new Set(["attemptFailed", "runFailed", "runTimedOut"]);

/** True for a report of a failure that the code of the run, or its result, is told too. */
export function isToldByResult({ source, details }: RuntimeEvent): boolean {
  return source === "runtime" && toldByResults.has(details["kind"]);
}
