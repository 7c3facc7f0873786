import { HoldfastError } from "../model/errors.ts";
import type { ErrorCode } from "../model/errors.ts";

/** The errors about one statement. All others are about the transaction or the database. */
const aboutStatement: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "CONSTRAINT_VIOLATED",
  "NUMBER_OUT_OF_RANGE",
  "STATEMENT_FAILED",
  "STATEMENT_INTERRUPTED",
  "PARAMETER_INVALID",
  "CORRUPT_ROW",
  "WRITE_IN_READ",
]);

/** Adds the operation and the statement to the error. Templates contain no values. */
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

/** The characters of a statement that an error shows, enough to find it in the code. */
const charactersMax = 120;

/** Returns a statement's text on one line, shortened when long. */
export function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > charactersMax ? `${line.slice(0, charactersMax)}…` : line;
}
