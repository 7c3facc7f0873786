/** Where in a run an error was thrown. */
export interface ThrownAt {
  /** Absent for the attempt of an activity as a whole. */
  readonly step?: string;
  /** From 1 on. */
  readonly attempt: number;
}

/** Errors that were recorded carry it out of sight, so that it is known wherever they are let pass to. */
export const thrownAt: unique symbol = Symbol.for("holdfast.thrownAt") as never;

export function isThrownAt(value: unknown): value is ThrownAt {
  const { step, attempt } = Object(value) as Partial<ThrownAt>;
  return Number.isSafeInteger(attempt) && (step === undefined || typeof step === "string");
}
