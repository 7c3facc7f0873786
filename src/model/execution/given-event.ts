import type { ExecutionEvent } from "./event.ts";
import type { ExecutionResult } from "./result.ts";

/**
 * An event as a caller passes it: with values instead of their hashes, which the codec computes.
 * `call` and `seen` default to 0. Kinds with their own method (`create`, `fork`) cannot be passed.
 */
export type GivenEvent = Given<ExecutionEvent<unknown>>;

type Given<E extends ExecutionEvent<unknown>> = E extends {
  readonly kind: "created" | "forked";
}
  ? never
  : E extends { readonly kind: "finished" }
    ? { readonly kind: "finished"; readonly result: ExecutionResult }
    : E extends { readonly kind: "continued" }
      ? {
          readonly kind: "continued";
          readonly input: unknown;
          /** The last response that the code had received; defaults to 0. */
          readonly seen?: number;
          /**
           * The unread signals among the received ones; defaults to all that were not taken by
           * name.
           */
          readonly unread?: readonly number[];
        }
      : E extends { readonly call: number }
        ? GivenFact<E> & { readonly call?: number; readonly seen?: number }
        : E;

type GivenFact<E extends { readonly kind: string }> = E extends {
  readonly kind: "childRequested";
}
  ? /** The input comes from `children` when the child is created by the same append. */
    Omit<E, "call" | "seen" | "inputHash"> & { readonly input?: unknown }
  : E extends { readonly kind: "scheduled" }
    ? /** The `children` of the append contain the execution that it starts. */
      Omit<E, "call" | "seen" | "inputHash" | "outcome">
    : E extends { readonly kind: "stepFinished" | "transactionFinished" }
      ? /** Without an input, replay compares none. */
        Omit<E, "call" | "seen" | "inputHash"> & { readonly input?: unknown }
      : E extends { readonly kind: "externalResolved" }
        ? Omit<E, "call" | "seen" | "resultHash"> & {
            readonly result: ExecutionResult;
          }
        : E extends { readonly kind: "waiting" }
          ? Omit<E, "call" | "seen" | "wakeAt"> & {
              readonly wakeAt?: number | null;
            }
          : Omit<E, "call" | "seen">;
