import type { ResultKind } from "./event.ts";

/**
 * A run's log as bars over time: a call, a wait, a child, or a time in which the run could not continue.
 * Bars of calls that ran beside each other overlap.
 */
export type Span = Bar & SpanFact;

interface Bar {
  /** The version of the event with which it begins in the log. */
  readonly version: number;
  readonly began: number;
  /** Null while it lasts. */
  readonly ended: number | null;
}

type SpanFact =
  /** A step or a transaction, from its first attempt to its end, with the pauses between. */
  | {
      readonly kind: "step" | "transaction";
      readonly call: number;
      readonly name: string;
      readonly outcome: "completed" | "failed" | null;
      readonly attempts: readonly SpanAttempt[];
    }
  | {
      readonly kind: "sleep";
      readonly call: number;
      readonly until: number;
      readonly outcome: "expired" | "cancelled" | null;
    }
  | {
      readonly kind: "receive";
      readonly call: number;
      readonly name: string;
      readonly until: number | null;
      readonly outcome: "received" | "timedOut" | null;
    }
  /** A run that this one called, from the request to its answer. */
  | {
      readonly kind: "child";
      readonly call: number;
      readonly name: string;
      readonly child: string;
      readonly outcome: ResultKind | null;
    }
  /** An answer from outside. */
  | {
      readonly kind: "external";
      readonly call: number;
      readonly child: string;
      readonly outcome: ResultKind | null;
    }
  /** An attempt of an activity, from its lock on. */
  | {
      readonly kind: "attempt";
      readonly attempt: number;
      readonly outcome: ResultKind | "released" | "died" | null;
    }
  /** From the notice that a worker was gone to the next worker. */
  | { readonly kind: "death"; readonly outcome: "ownerDied" | "leaseExpired" }
  | { readonly kind: "paused" | "cancelling" }
  /** The outcome is the code of the reason. */
  | { readonly kind: "parked"; readonly outcome: string | null };

/**
 * One attempt of a step or a transaction: when its body ran. An announced attempt is also there
 * while it runs, and after its worker was lost.
 */
export interface SpanAttempt {
  readonly attempt: number;
  readonly began: number;
  readonly ended: number | null;
  readonly outcome: "completed" | "failed" | "died" | null;
}
