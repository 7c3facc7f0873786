import { corruptRow } from "../../model/corrupt-row.ts";
import { parseProcessId } from "../../model/process-id.ts";
import type { ProcessOutput } from "../../model/process-output.ts";
import { signalType } from "../../model/process.ts";
import {
  checkedCount,
  checkedText,
  givenObject,
  optionsOf,
} from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { waitUntil } from "../wait.ts";
import { givenWait, waitNames } from "../given.ts";
import { checkedSignal } from "./commands.ts";
import type { ProcessSurroundings } from "./context.ts";
import { readEnd, readEvents, readSignal } from "./read.ts";
import { processEnded, processEvent } from "./topics.ts";
import { eventView, outputView } from "./views.ts";
import type { ProcessEventView } from "./views.ts";

export interface AwaitedProcessEvent {
  /** Any, unless told. */
  readonly type?: string;
  /** Behind this number: from the first on, unless told. */
  readonly after?: number;
}

/** Waiting for what happens to a process, in this process or any other. */
export interface ProcessWaits {
  /**
   * The first event of a type behind a cursor: at once if it is there.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `ABORTED`, `DEADLINE_EXCEEDED`, `CORRUPT_ROW`
   * @example const event = await processes.waitForEvent("build-7", { type: "progress", after: 3 }, { timeout: "1m" });
   */
  waitForEvent(
    process: string,
    awaited?: AwaitedProcessEvent,
    wait?: WaitOptions,
  ): Promise<ProcessEventView>;
  /** The n-th signal of a name, from 1 on. @throws HoldfastError as `waitForEvent` */
  waitForSignal(
    process: string,
    signal: string,
    ordinal: number,
    wait?: WaitOptions,
  ): Promise<ProcessEventView>;
  /** What a process ends with. @throws HoldfastError as `waitForEvent` */
  waitForEnd(process: string, wait?: WaitOptions): Promise<ProcessOutput>;
}

export function processWaits(around: ProcessSurroundings): ProcessWaits {
  const { database, codec } = around;
  return {
    async waitForEvent(process, awaited, wait) {
      const { type: wanted, after = 0 } =
        awaited === undefined
          ? {}
          : optionsOf(givenObject("awaited", awaited), ["type", "after"]);
      const type =
        wanted === undefined
          ? undefined
          : checkedText("The type of an event", wanted);
      const input = {
        process: parseProcessId(process),
        after: checkedCount("after", after, { min: -1 }),
        type,
        isWake: false,
        limit: 1,
      };
      const event = await waitFor(around, wait, {
        what: `an event ${type === undefined ? "" : `of type "${type}" `}of process "${process}"`,
        process,
        topic: processEvent,
        async find(options) {
          const page = await database.read(readEvents, input, options);
          const [damaged] = page.damaged;
          if (damaged !== undefined)
            throw corruptRow(damaged.table, damaged.key, "is damaged");
          return page.items[0];
        },
      });
      return eventView(codec, event);
    },
    async waitForSignal(process, name, ordinal, wait) {
      const input = {
        process: parseProcessId(process),
        type: signalType(checkedSignal(name)),
        ordinal: checkedCount("ordinal", ordinal, { min: 1 }),
      };
      const event = await waitFor(around, wait, {
        what: `signal ${ordinal} "${name}" of process "${process}"`,
        process,
        topic: processEvent,
        find: (options) => database.read(readSignal, input, options),
      });
      return eventView(codec, event);
    },
    async waitForEnd(process, wait) {
      const input = { process: parseProcessId(process) };
      const end = await waitFor(around, wait, {
        what: `the end of process "${process}"`,
        process,
        topic: processEnded,
        find: (options) => database.read(readEnd, input, options),
      });
      return outputView(codec, end);
    },
  };
}

interface Awaited<T> {
  readonly what: string;
  readonly process: string;
  readonly topic: string;
  readonly find: (options: WaitOptions) => Promise<T | undefined>;
}

function waitFor<T>(
  { database, clock }: ProcessSurroundings,
  given: WaitOptions | undefined,
  { what, process, topic, find }: Awaited<T>,
): Promise<T> {
  const wait = givenWait(optionsOf(given, waitNames));
  return waitUntil(
    database,
    {
      what,
      clock,
      isRelevant: ({ operation, key }) =>
        operation === topic && key === process,
      async look() {
        const value = await find({ signal: wait.signal });
        return value === undefined
          ? { isThere: false }
          : { isThere: true, value };
      },
    },
    wait,
  );
}
