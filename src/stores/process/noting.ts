import { coreTypes } from "../../model/process-event-type.ts";
import { parseProcessId } from "../../model/process-id.ts";
import type { ProcessWait } from "../../model/process.ts";
import { checkedCount, checkedText, givenObject } from "../../model/shape.ts";
import { eventPayload } from "./append-event.ts";
import { checkedSignal, fencedOptions } from "./commands.ts";
import type { ProcessFenceOptions } from "./commands.ts";
import type { ProcessSurroundings } from "./context.ts";
import { fenced } from "./expire.ts";
import { setExternalRef } from "./external-ref.ts";
import { clearWait, setWait } from "./wait-state.ts";

/** Work in another system. */
export interface ProcessExternalRef {
  readonly backend: string;
  readonly id: string;
  readonly metadata?: unknown;
}

/** What is noted about a process: what it waits for, and what it stands for. */
export interface ProcessNotes {
  /** Records that a process waits for the n-th signal of a name. @throws HoldfastError `PROCESS_TERMINAL`, `EVENT_TYPE_UNDECLARED`, `PROCESS_LEASED` while somebody else works on it, `PROCESS_LEASE_LOST` … */
  setWait(
    process: string,
    awaited: { readonly signal: string; readonly ordinal: number },
    options?: ProcessFenceOptions,
  ): Promise<ProcessWait>;
  /** Records that it goes on; false when it did not wait. @throws HoldfastError as `setWait` */
  clearWait(process: string, options?: ProcessFenceOptions): Promise<boolean>;
  /**
   * Records which outside work a process stands for; false when that was known.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `EXTERNAL_REF_CONFLICT`, `PROCESS_LEASED` while somebody else works on it, `PROCESS_LEASE_LOST`
   */
  setExternalRef(
    process: string,
    ref: ProcessExternalRef,
    options?: ProcessFenceOptions,
  ): Promise<boolean>;
}

const idCharactersMax = 512;

export function processNotes(around: ProcessSurroundings): ProcessNotes {
  const { database, codec } = around;
  return {
    async setWait(process, awaited, options) {
      const { signal, ordinal } = givenObject("awaited", awaited);
      const { fence, ...wait } = fencedOptions(options);
      const input = {
        process: parseProcessId(process),
        signal: checkedSignal(signal),
        ordinal: checkedCount("ordinal", ordinal, { min: 1 }),
        fence,
      };
      return fenced(around, input, (now) =>
        database.write(setWait, { ...input, now }, wait),
      );
    },
    async clearWait(process, options) {
      const { fence, ...wait } = fencedOptions(options);
      const input = {
        process: parseProcessId(process),
        fence,
      };
      return fenced(around, input, (now) =>
        database.write(clearWait, { ...input, now }, wait),
      );
    },
    async setExternalRef(process, ref, options) {
      const { fence, ...wait } = fencedOptions(options);
      const { backend, id, metadata } = givenObject("ref", ref);
      const value = {
        backend: checkedText("The backend of outside work", backend),
        id: checkedText("The id of outside work", id, idCharactersMax),
        ...(metadata !== undefined && { metadata }),
      };
      const input = {
        process: parseProcessId(process),
        ref: eventPayload(codec, coreTypes.externalRef, value),
        fence,
      };
      return fenced(around, input, (now) =>
        database.write(setExternalRef, { ...input, now }, wait),
      );
    },
  };
}
