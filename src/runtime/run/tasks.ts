import type { RetryPolicy } from "../../model/time/retry-policy.ts";
import type { Isolation } from "../../sql/isolation.ts";
import type { Tx } from "../../sql/operation.ts";
import type { StepBody } from "../definition/workflow-context.ts";

/** A call of `ctx.step`. */
export interface Step {
  readonly kind: "step";
  readonly call: number;
  readonly name: string;
  readonly body: StepBody<unknown>;
  readonly retry: RetryPolicy;
  readonly timeoutMs: number | undefined;
  /** Each attempt is recorded before its body begins. */
  readonly isAnnounced: boolean;
}

/** A call of `ctx.transaction`. */
export interface Transaction {
  readonly kind: "transaction";
  readonly call: number;
  readonly name: string;
  readonly body: () => Tx<unknown>;
  readonly isolation: Isolation;
  readonly retry: RetryPolicy;
}

export type Task = Step | Transaction;

export interface TransactionAttempt {
  readonly transaction: Transaction;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
}
