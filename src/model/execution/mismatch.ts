/** The kinds of calls that replay compares. */
export const callKinds = ["step", "transaction", "child", "start", "sleep", "receive"] as const;

export type CallKind = (typeof callKinds)[number];

/**
 * One call of a run's code, as its log has it or as the code made it. It is stored in the clear, so
 * it holds names and hashes and no values.
 */
export interface ComparedCall {
  readonly kind: CallKind;
  /** The name of the step, function or signal; "" for a sleep. */
  readonly name: string;
  /** A sleep's time, a child's place, a start's id and time; "" for other calls. */
  readonly target: string;
  /** The hash of the input of a child or a start; null for other calls. */
  readonly inputHash: string | null;
  /** The code version of the worker that made the call. */
  readonly codeVersion: string | null;
}

/** The first call at which the code of a run differs from its log. */
export interface Mismatch {
  /** The number of the call, from 1. */
  readonly call: number;
  /** The version of the recorded event; null when the log has none for the call. */
  readonly version: number | null;
  /** Null when the log has no such call. */
  readonly recorded: ComparedCall | null;
  /** Null when the code did not make the call. */
  readonly actual: ComparedCall | null;
}
