import { HoldfastError } from "../../../model/errors.ts";
import type { ComparedCall, Mismatch } from "../../../model/execution/mismatch.ts";
import { spokenOrigin } from "../../failures.ts";
import type { Settled } from "../run-state.ts";
import { spokenShape, type CallShape } from "./call-shape.ts";
import type { Difference } from "./replay.ts";

/** The run whose code differs, and the code on both sides. */
interface Compared {
  readonly run: string;
  readonly function: string;
  readonly codeVersion: string | null;
  readonly recordedCodeVersion: string | null;
}

/**
 * The error for code that does not match its log: the run is parked, or a replay reports the
 * difference. The message has the calls in words, and `details.mismatch` has them as fields.
 */
export function nondeterminism(
  compared: Compared,
  { call, version, settled, ...shapes }: Difference,
  isOnlyReplayed: boolean,
): HoldfastError {
  const { run, codeVersion, recordedCodeVersion } = compared;
  const thrown = settled?.kind === "threw" ? settled.error : undefined;
  const recorded = shapes.recorded === undefined ? "nothing" : spokenShape(shapes.recorded);
  const actual = shapes.actual === undefined ? spokenAbsence(settled) : spokenShape(shapes.actual);
  const mismatch: Mismatch = {
    call,
    version,
    recorded: comparedCall(shapes.recorded, recordedCodeVersion),
    actual: comparedCall(shapes.actual, codeVersion),
  };
  return new HoldfastError(
    "NONDETERMINISM",
    `Run ${run} of ${compared.function} does not match its log at call ${call}` +
      `${version === null ? "" : `, event ${version}`}:\n` +
      `  recorded: ${recorded}${under(recordedCodeVersion)}\n` +
      `  actual:   ${actual}${under(codeVersion)}\n` +
      (isOnlyReplayed
        ? "A worker with this code would park such a run. Restore the old code, or keep it for old runs with ctx.patched(). "
        : "The run is parked; nothing was lost, and nothing new was run. If the code was changed under open runs, restore the old code, " +
          "keep it for old runs with ctx.patched(), or fix it and unpark the run. ") +
      "Code that depends on time, randomness or anything outside belongs in a step.",
    { ...compared, call, version, recorded, actual, mismatch },
    thrown === undefined ? undefined : { cause: thrown },
  );
}

/** The calls in the error of a run that differs from its log; undefined for other errors. */
export function mismatchIn({ code, details }: HoldfastError): Mismatch | undefined {
  return code === "NONDETERMINISM" ? (details["mismatch"] as Mismatch | undefined) : undefined;
}

function comparedCall(
  shape: CallShape | undefined,
  codeVersion: string | null,
): ComparedCall | null {
  if (shape === undefined) return null;
  const { kind, name, intention: target, inputHash } = shape;
  return { kind, name, target, inputHash, codeVersion };
}

/** Describes a missing call. An error that keeps the code from its calls is the fault to fix. */
function spokenAbsence(settled: Settled | undefined): string {
  if (settled === undefined) return "no such call";
  return settled.kind === "returned"
    ? "no such call: the code returned"
    : `no such call: the code threw ${spokenOrigin(settled.error)}`;
}

function under(codeVersion: string | null): string {
  return codeVersion === null ? "" : ` (code version ${codeVersion})`;
}
