import { parseExecutionId } from "../../../model/execution-id.ts";
import type { RunId } from "../../../model/prefixed-id.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { appendBacktraces, readBacktrace } from "./backtraces.ts";
import type { BacktraceRange, ReadBacktrace } from "./backtraces.ts";
import { withValues } from "../../damage.ts";
import type { Surroundings } from "../context.ts";
import { appendLogs } from "./logs.ts";
import type { LogLevel } from "./logs.ts";
import { listLogs } from "./read-logs.ts";
import type { ListLogs, LogLine, LogPage } from "./read-logs.ts";

/** A line for people; `data` is kept beside it. */
export interface LogEntry {
  readonly level: LogLevel;
  readonly message: string;
  readonly run?: RunId;
  readonly data?: unknown;
}

export interface LogLineView extends Omit<LogLine, "payload"> {
  readonly data: unknown;
}

export interface LogPageView extends Omit<LogPage, "items"> {
  readonly items: readonly LogLineView[];
}

/** What is known about an execution beside its log of events. */
export interface ExecutionNotes {
  /**
   * Adds lines, all or none: at most 200. Repeated, it adds them twice: when
   * the outcome is unknown, look at the last lines first.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `TEXT_INVALID`, `VALUE_TOO_LARGE`
   */
  log(
    id: string,
    entries: readonly LogEntry[],
    wait?: WaitOptions,
  ): Promise<void>;
  /** Lines in the order of writing; of an unknown execution there are none. Those that cannot be read are in `damaged`. */
  logs(
    id: string,
    options?: Partial<Omit<ListLogs, "id">> & WaitOptions,
  ): Promise<LogPageView>;
  /** Tells where in the code the events of a range came from. May be repeated. @throws HoldfastError `EXECUTION_NOT_FOUND`, `BACKTRACE_EXISTS`, `TEXT_INVALID` */
  addBacktraces(
    id: string,
    ranges: readonly Omit<BacktraceRange, "hash">[],
    wait?: WaitOptions,
  ): Promise<void>;
  /** @throws HoldfastError `EXECUTION_NOT_FOUND`, `BACKTRACE_NOT_FOUND` */
  backtrace(
    id: string,
    which: ReadBacktrace["which"],
    wait?: WaitOptions,
  ): Promise<BacktraceRange>;
}

export function executionNotes({
  database,
  clock,
  codec,
}: Surroundings): ExecutionNotes {
  return {
    async log(id, entries, wait) {
      const at = clock.now();
      const lines = entries.map(({ data, ...line }) => ({
        ...line,
        at,
        ...(data !== undefined && { payload: codec.value(data) }),
      }));
      await database.write(
        appendLogs,
        { id: parseExecutionId(id), lines },
        wait,
      );
    },
    async logs(id, { signal, timeout, ...asked } = {}) {
      const page = await database.read(
        listLogs,
        { limit: 50, ...asked, id: parseExecutionId(id) },
        { signal, timeout },
      );
      return withValues(
        "holdfast_execution_log",
        page,
        ({ key }) => `${id}#${key}`,
        ({ payload, ...line }) => ({
          ...line,
          data: payload === null ? undefined : codec.readValue(payload),
        }),
      );
    },
    async addBacktraces(id, given, wait) {
      const ranges = given.map((range) => ({
        ...range,
        hash: database.sha256Hex(range.stack),
      }));
      await database.write(
        appendBacktraces,
        { id: parseExecutionId(id), ranges },
        wait,
      );
    },
    backtrace: async (id, which, wait) =>
      database.read(readBacktrace, { id: parseExecutionId(id), which }, wait),
  };
}
