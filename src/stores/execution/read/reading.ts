import type {
  Created,
  LoggedEvent,
  LoggedResponse,
} from "../../../model/execution-event.ts";
import { parseExecutionId } from "../../../model/execution-id.ts";
import { parseFunctionName } from "../../../model/function-name.ts";
import type { ExecutionResult } from "../../../model/result.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { listCancelling } from "../control/cancelling.ts";
import type { CancellingPage } from "../control/cancelling.ts";
import { countExecutions } from "./counts.ts";
import type { CountOptions, ExecutionCounts } from "./counts.ts";
import { withValues } from "../../damage.ts";
import type { Surroundings } from "../context.ts";
import { listExecutions } from "./list.ts";
import type { ExecutionPage, ListExecutions } from "./list.ts";
import { listEvents, readEvent, readLastEvent } from "./read-events.ts";
import type { EventPage, ListEvents } from "./read-events.ts";
import { listResponses } from "./read-responses.ts";
import type { ListResponses, ResponsePage } from "./read-responses.ts";
import { readCreated, readExecution, readResult } from "./read.ts";
import type { ExecutionDetails } from "./read.ts";
import { readTree } from "./tree.ts";
import type { TreePage } from "./tree.ts";

/** An execution with its progress read. */
export interface ExecutionView extends Omit<ExecutionDetails, "progress"> {
  readonly progress: unknown;
}

/** A page of events with their values read. */
export interface EventPageView extends Omit<EventPage, "items"> {
  readonly items: readonly (LoggedEvent<unknown> & {
    readonly backtrace?: string;
  })[];
}

export interface ResponsePageView extends Omit<ResponsePage, "items"> {
  readonly items: readonly LoggedResponse<unknown>[];
}

const limitDefault = 50;

/** Looking at executions. What cannot be read is named in `damaged`; single reads throw `CORRUPT_ROW`. */
export interface ExecutionReads {
  /** Where an execution stands. @throws HoldfastError `EXECUTION_NOT_FOUND` */
  get(id: string, wait?: WaitOptions): Promise<ExecutionView>;
  /** What it was created with. @throws HoldfastError `EXECUTION_NOT_FOUND` */
  created(id: string, wait?: WaitOptions): Promise<Created<unknown>>;
  /** How it ended; undefined while it has not. @throws HoldfastError `EXECUTION_NOT_FOUND` */
  result(id: string, wait?: WaitOptions): Promise<ExecutionResult | undefined>;
  event(
    id: string,
    version: number,
    wait?: WaitOptions,
  ): Promise<LoggedEvent<unknown>>;
  lastEvent(id: string, wait?: WaitOptions): Promise<LoggedEvent<unknown>>;
  /** Events by version; of an unknown execution there are none. */
  events(
    id: string,
    options?: Partial<Omit<ListEvents, "id">> & WaitOptions,
  ): Promise<EventPageView>;
  /** Responses by number; of an unknown execution there are none. */
  responses(
    id: string,
    options?: Partial<Omit<ListResponses, "id">> & WaitOptions,
  ): Promise<ResponsePageView>;
  /** Executions, newest first. A page may be short and have an older one: it looks at so many rows and no more. */
  list(
    options?: Partial<Omit<ListExecutions, "now">> & WaitOptions,
  ): Promise<ExecutionPage>;
  /**
   * What is being cancelled and has not ended, of one function, by id: for
   * whoever ends it, its children first. Each marking announces
   * `execution.cancelling` with the function as its key.
   */
  cancelling(
    options: WaitOptions & {
      readonly function: string;
      readonly limit?: number;
      readonly after?: string;
    },
  ): Promise<CancellingPage>;
  /** An execution and all below it. @throws HoldfastError `EXECUTION_NOT_FOUND` */
  tree(
    id: string,
    options?: WaitOptions & {
      readonly limit?: number;
      readonly after?: string;
    },
  ): Promise<TreePage>;
  /** How many there are of each function and status, counted in slices. */
  count(
    options?: Pick<CountOptions, "signal" | "onProgress">,
  ): Promise<ExecutionCounts>;
}

export function executionReads(around: Surroundings): ExecutionReads {
  const { database, clock, codec } = around;
  return {
    async get(id, wait) {
      const found = await database.read(
        readExecution,
        parseExecutionId(id),
        wait,
      );
      const { progress } = found;
      return {
        ...found,
        progress: progress === null ? null : codec.readValue(progress),
      };
    },
    async created(id, wait) {
      const { at, created } = await database.read(
        readCreated,
        parseExecutionId(id),
        wait,
      );
      return codec.readEvent({ version: 0, at, event: created })
        .event as Created<unknown>;
    },
    async result(id, wait) {
      const ended = await database.read(readResult, parseExecutionId(id), wait);
      return ended && codec.readResult(ended.result);
    },
    event: async (id, version, wait) =>
      codec.readEvent(
        await database.read(
          readEvent,
          { id: parseExecutionId(id), version },
          wait,
        ),
      ),
    lastEvent: async (id, wait) =>
      codec.readEvent(
        await database.read(readLastEvent, parseExecutionId(id), wait),
      ),
    ...pagedReads(around),
    count: (options = {}) =>
      countExecutions(database, {
        ...options,
        now: clock.now(),
        // A read that need not wait for a flush comes back before the event loop does.
        pause: () => database.pause(),
      }),
  };
}

function pagedReads({
  database,
  clock,
  codec,
}: Surroundings): Pick<
  ExecutionReads,
  "events" | "responses" | "list" | "tree" | "cancelling"
> {
  return {
    async events(id, { signal, timeout, ...asked } = {}) {
      const page = await database.read(
        listEvents,
        { limit: limitDefault, ...asked, id: parseExecutionId(id) },
        { signal, timeout },
      );
      return withValues(
        "holdfast_execution_event",
        page,
        ({ version }) => `${id}#${version}`,
        ({ backtrace, ...logged }) => ({
          ...codec.readEvent(logged),
          ...(backtrace !== undefined && { backtrace }),
        }),
      );
    },
    async responses(id, { signal, timeout, ...asked } = {}) {
      const page = await database.read(
        listResponses,
        { limit: limitDefault, ...asked, id: parseExecutionId(id) },
        { signal, timeout },
      );
      return withValues(
        "holdfast_execution_response",
        page,
        ({ seq }) => `${id}#${seq}`,
        (logged) => codec.readResponse(logged),
      );
    },
    list: async ({ signal, timeout, ...asked } = {}) =>
      database.read(
        listExecutions,
        { limit: limitDefault, ...asked, now: clock.now() },
        { signal, timeout },
      ),
    cancelling: async ({ signal, timeout, limit = limitDefault, ...asked }) =>
      database.read(
        listCancelling,
        {
          function: parseFunctionName(asked.function),
          limit,
          ...(asked.after !== undefined && {
            after: parseExecutionId(asked.after),
          }),
        },
        { signal, timeout },
      ),
    tree: async (id, { signal, timeout, limit = limitDefault, after } = {}) =>
      database.read(
        readTree,
        {
          id: parseExecutionId(id),
          limit,
          ...(after !== undefined && { after: parseExecutionId(after) }),
        },
        { signal, timeout },
      ),
  };
}
