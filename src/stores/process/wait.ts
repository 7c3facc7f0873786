import { parseProcessId } from "../../model/ids/process-id.ts";
import type { ProcessOutput } from "../../model/process/output.ts";
import { signalType } from "../../model/process/process.ts";
import { checkedCount, draftOf } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import type { StoreOperation } from "../../sql/operation.ts";
import { onlyWait } from "../method.ts";
import { waitUntil } from "../wait.ts";
import { checkedSignal } from "./append.ts";
import { eventView, outputView, type ProcessContext, type ProcessEventView } from "./context.ts";
import { processEnded, processEvent } from "./event-row.ts";
import { checkedType, nextEvent, readEnd, readSignal } from "./read.ts";

export interface AwaitedProcessEvent {
  /** Defaults to any type. */
  readonly type?: string;
  /** Only events after this number; defaults to 0, the registration. */
  readonly after?: number;
}

/** Waits for the first event of a type after a number. */
export async function waitForEvent(
  context: ProcessContext,
  process: string,
  awaited: AwaitedProcessEvent | undefined,
  wait: WaitOptions | undefined,
): Promise<ProcessEventView> {
  const { type: given, after = 0 } =
    awaited === undefined ? {} : draftOf("awaited", awaited, ["type", "after"]);
  const type = given === undefined ? undefined : checkedType(given);
  const input = {
    process: parseProcessId(process),
    after: checkedCount("after", after, { min: -1 }),
    type,
  };
  const event = await waitFor(context, nextEvent, input, wait, {
    what: `an event ${type === undefined ? "" : `of type "${type}" `}of process "${process}"`,
    topic: processEvent,
  });
  return eventView(context, event);
}

/** Waits for the n-th signal of a name. */
export async function waitForSignal(
  context: ProcessContext,
  process: string,
  name: string,
  ordinal: number,
  wait: WaitOptions | undefined,
): Promise<ProcessEventView> {
  const input = {
    process: parseProcessId(process),
    type: signalType(checkedSignal(name)),
    ordinal: checkedCount("ordinal", ordinal, { min: 1 }),
  };
  const event = await waitFor(context, readSignal, input, wait, {
    what: `signal ${ordinal} "${name}" of process "${process}"`,
    topic: processEvent,
  });
  return eventView(context, event);
}

/** Waits for the output that a process ends with. */
export async function waitForEnd(
  context: ProcessContext,
  process: string,
  wait: WaitOptions | undefined,
): Promise<ProcessOutput> {
  const input = { process: parseProcessId(process) };
  const end = await waitFor(context, readEnd, input, wait, {
    what: `the end of process "${process}"`,
    topic: processEnded,
  });
  return outputView(context, end);
}

function waitFor<I extends { readonly process: string }, T>(
  context: ProcessContext,
  read: StoreOperation<ProcessContext, I, T | undefined>,
  input: I,
  given: WaitOptions | undefined,
  { what, topic }: { readonly what: string; readonly topic: string },
): Promise<T> {
  const { database, clock } = context;
  const wait = onlyWait(given);
  const { signal } = wait;
  return waitUntil(
    database,
    {
      what,
      clock,
      interests: [{ operation: topic, key: input.process }],
      async look() {
        const value = await database.read(read(context), input, { signal });
        return value === undefined ? { isThere: false } : { isThere: true, value };
      },
    },
    wait,
  );
}
