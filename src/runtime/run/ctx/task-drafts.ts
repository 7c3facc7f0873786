import { checkedText, givenFlag, givenInvalid, optionsOf } from "../../../model/shape.ts";
import { durationMs } from "../../../model/time/durations.ts";
import { refuseAsync } from "../../../sql/body.ts";
import type { Tx } from "../../../sql/operation.ts";
import { givenIsolation } from "../../../stores/given.ts";
import { retryPolicyOf } from "../../definition/retries.ts";
import type {
  StepBody,
  StepOptions,
  TransactionOptions,
} from "../../definition/workflow-context.ts";
import type { Step, Transaction } from "../tasks.ts";

/** A step or a transaction whose call has no number yet. */
export type TaskDraft = Omit<Step, "call"> | Omit<Transaction, "call">;

/**
 * Checks the arguments of a step before its call exists: a refused call would stay open.
 * @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`
 */
export function stepDraft(
  name: string,
  first: StepBody<unknown> | StepOptions,
  second: StepBody<unknown> | undefined,
): Omit<Step, "call"> {
  checkedText("A step's name", name);
  const isBare = second === undefined && typeof first === "function";
  const { retry, timeout, announced } = isBare
    ? noOptions
    : optionsOf<StepOptions>(first as StepOptions, ["retry", "timeout", "announced"]);
  const body = isBare ? first : second;
  if (typeof body !== "function") throw givenInvalid(`step "${name}"`, "a function", body);
  return {
    kind: "step",
    name,
    body,
    retry: retryPolicyOf(retry),
    timeoutMs: timeout === undefined ? undefined : durationMs(timeout, "timeout"),
    isAnnounced: givenFlag("announced", announced) ?? false,
  };
}

/**
 * Checks the arguments of a transaction before its call exists.
 * @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`, `OPERATION_INVALID` for an async body
 */
export function transactionDraft(
  name: string,
  first: (() => Tx<unknown>) | TransactionOptions,
  second: (() => Tx<unknown>) | undefined,
): Omit<Transaction, "call"> {
  checkedText("A transaction's name", name);
  const isBare = second === undefined && typeof first === "function";
  const { isolation, retry } = isBare
    ? noOptions
    : optionsOf<TransactionOptions>(first as TransactionOptions, ["isolation", "retry"]);
  const body = isBare ? first : second;
  if (typeof body !== "function")
    throw givenInvalid(`transaction "${name}"`, "a generator function", body);
  refuseAsync(name, body);
  return {
    kind: "transaction",
    name,
    body,
    isolation: givenIsolation(isolation) ?? "serializable",
    retry: retryPolicyOf(retry),
  };
}

const noOptions: StepOptions & TransactionOptions = {};
