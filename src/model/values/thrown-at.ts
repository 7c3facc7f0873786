/** The place in a run where an error was thrown. */
export interface ThrownAt {
  /** Absent for the attempt of an activity as a whole. */
  readonly step?: string;
  /** Counted from 1. */
  readonly attempt: number;
}

/** A hidden property of recorded errors, which keeps the place wherever they are passed on. */
export const thrownAt: unique symbol = Symbol.for("holdfast.thrownAt") as never;

export function isThrownAt(value: unknown): value is ThrownAt {
  const { step, attempt } = Object(value) as Partial<ThrownAt>;
  return Number.isSafeInteger(attempt) && (step === undefined || typeof step === "string");
}
