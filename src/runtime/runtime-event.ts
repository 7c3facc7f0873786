import { isFinalCode } from "../model/errors.ts";

/**
 * What the runtime and the code of runs say, for logs. `message` is for
 * people; `details` has ids and names: of a run its `id` and `function`, with
 * `step` and `attempt` where there is one.
 */
export interface RuntimeEvent {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** Who says it: the code of a run, by `ctx.log`, or the runtime. */
  readonly source: "code" | "runtime";
  /** What `ctx.log` was given beside the message. The runtime never tells values. */
  readonly data?: unknown;
}

/** What the runtime says itself. */
export type Notice = Omit<RuntimeEvent, "source" | "data">;

/** Whether it tells that something of the runtime has stopped for good, since only opening the database again helps. */
export function tellsOfStop(event: RuntimeEvent): boolean {
  const { level, source, details } = event;
  return (
    level === "error" &&
    source === "runtime" &&
    details["id"] === undefined &&
    isFinalCode(details["code"])
  );
}
