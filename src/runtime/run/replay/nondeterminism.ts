import { HoldfastError } from "../../../model/errors.ts";

export interface Mismatch {
  readonly run: string;
  readonly function: string;
  readonly codeVersion: string | null;
  readonly recordedCodeVersion: string | null;
  readonly call: number;
  /** The version of the event in the log; null when there is none. */
  readonly version: number | null;
  readonly recorded: string;
  readonly actual: string;
}

/** The error for code that does not match its log: the run is parked, or a replay reports the difference. */
export function nondeterminism(
  mismatch: Mismatch,
  isOnlyReplayed: boolean,
  cause?: unknown,
): HoldfastError {
  const { run, call, version, recorded, actual } = mismatch;
  const under = ({ codeVersion }: Pick<Mismatch, "codeVersion">): string =>
    codeVersion === null ? "" : ` (code version ${codeVersion})`;
  return new HoldfastError(
    "NONDETERMINISM",
    `Run ${run} of ${mismatch.function} does not match its log at call ${call}` +
      `${version === null ? "" : `, event ${version}`}:\n` +
      `  recorded: ${recorded}${under({ codeVersion: mismatch.recordedCodeVersion })}\n` +
      `  actual:   ${actual}${under(mismatch)}\n` +
      (isOnlyReplayed
        ? "A worker with this code would park such a run. Restore the old code, or keep it for old runs with ctx.patched(). "
        : "The run is parked; nothing was lost, and nothing new was run. If the code was changed under open runs, restore the old code, " +
          "keep it for old runs with ctx.patched(), or fix it and unpark the run. ") +
      "Code that depends on time, randomness or anything outside belongs in a step.",
    { ...mismatch },
    cause === undefined ? undefined : { cause },
  );
}
