import type { ExecutionEvent } from "./event.ts";
import type { ExecutionResult } from "./result.ts";

/**
 * An event as a caller gives it: values instead of their hashes, which the
 * codec computes, and `call` and `seen` only where they are not 0. What has a
 * call of its own (`create`, `fork`) cannot be given.
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
          /** The last response that the code had been given; defaults to 0. */
          readonly seen?: number;
          /** Of what it had been given, the signals that it has not read; by default all that were not taken by name. */
          readonly unread?: readonly number[];
        }
      : E extends { readonly call: number }
        ? GivenFact<E> & { readonly call?: number; readonly seen?: number }
        : E;

type GivenFact<E extends { readonly kind: string }> = E extends {
  readonly kind: "childRequested";
}
  ? /** The input is taken from `children` when what is asked for is created with it. */
    Omit<E, "call" | "seen" | "inputHash"> & { readonly input?: unknown }
  : E extends { readonly kind: "scheduled" }
    ? /** What it starts is among the `children` of the append. */
      Omit<E, "call" | "seen" | "inputHash" | "outcome">
    : E extends { readonly kind: "stepFinished" | "transactionFinished" }
      ? /** Without an input nothing is compared when it is replayed. */
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
