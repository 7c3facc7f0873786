import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { RunLog } from "../definition/workflow-context.ts";

/** The run, and the step if there is one, whose code writes a line. */
export interface Speaker {
  readonly id: ExecutionId;
  readonly function: string;
  readonly step?: string | undefined;
  readonly attempt?: number | undefined;
}

type Level = keyof RunLog;

/** A log with four levels and one writer. */
export function runLog(write: (level: Level, message: string, data: unknown) => void): RunLog {
  return {
    debug: (message, data) => write("debug", message, data),
    info: (message, data) => write("info", message, data),
    warn: (message, data) => write("warn", message, data),
    error: (message, data) => write("error", message, data),
  };
}

/** Reports a line and stores it with its run. A line that cannot be stored is reported. */
export function writeLine(
  { say, tell, pages: { executions } }: RuntimeContext,
  { id, function: name, step, attempt }: Speaker,
  level: Level,
  message: string,
  data: unknown,
): void {
  const place = {
    ...(step !== undefined && { step }),
    ...(attempt !== undefined && { attempt }),
  };
  const line = { level, message, ...(data !== undefined && { data }) };
  const details = { id, function: name, ...place };
  say({ ...line, source: "code", details });
  executions.log(id, [{ ...line, ...place }]).catch((error: unknown) =>
    tell({
      level: "warn",
      message: `A line of run ${id} of ${name} could not be kept: ${(error as Error).message}`,
      details,
    }),
  );
}
