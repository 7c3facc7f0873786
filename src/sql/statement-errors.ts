import { HoldfastError } from "../model/errors.ts";
import type { ErrorCode } from "../model/errors.ts";

/** The errors that are about one statement; others are about the transaction or the database. */
const aboutStatement: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "CONSTRAINT_VIOLATED",
  "NUMBER_OUT_OF_RANGE",
  "STATEMENT_FAILED",
  "STATEMENT_INTERRUPTED",
  "PARAMETER_INVALID",
  "CORRUPT_ROW",
  "WRITE_IN_READ",
]);

/** The same error, saying also which operation ran which statement. Templates hold no values. */
export function inStatement(error: HoldfastError, operation: string, text: string): HoldfastError {
  if (!aboutStatement.has(error.code)) return error;
  const statement = shortened(text);
  return new HoldfastError(
    error.code,
    `${error.message} In operation "${operation}": ${statement}`,
    { ...error.details, operation, statement },
    error.cause === undefined ? undefined : { cause: error.cause },
  );
}

/** Enough of a statement to find it in the code. */
const charactersMax = 120;

/** A statement's text on one line, cut when long. */
export function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > charactersMax ? `${line.slice(0, charactersMax)}…` : line;
}
