import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { RunLog } from "../definition/workflow-context.ts";

/** Whose code writes a line. */
export interface Speaker {
  readonly id: ExecutionId;
  readonly function: string;
  readonly step?: string | undefined;
  readonly attempt?: number | undefined;
}

type Level = keyof RunLog;

/** Four levels that go one way. */
export function runLog(write: (level: Level, message: string, data: unknown) => void): RunLog {
  return {
    debug: (message, data) => write("debug", message, data),
    info: (message, data) => write("info", message, data),
    warn: (message, data) => write("warn", message, data),
    error: (message, data) => write("error", message, data),
  };
}

/** Tells a line and keeps it with its run; what cannot be kept is told of. */
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
