import { isHoldfastError, originOf, type ErrorCode } from "../model/errors.ts";

/**
 * Exit codes for scripts: these numbers never change. docs/cli.md explains each. Findings of a
 * check have a code of their own, so that a script can distinguish them from a check that failed.
 */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  refused: 4,
  unopened: 5,
  findings: 6,
  passing: 7,
  interrupted: 130,
  terminated: 143,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Mistakes in the command line or in a config file. */
const ofUsage: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "ID_MALFORMED",
  "NAME_INVALID",
  "DURATION_INVALID",
  "TIME_OUT_OF_RANGE",
  "OPTION_INVALID",
  "NOT_SERIALIZABLE",
  "VALUE_TOO_LARGE",
  "DATABASE_PATH_INVALID",
  "CURSOR_INVALID",
  "TEXT_INVALID",
  "INPUT_INVALID",
  "ANSWER_INVALID",
  "AWAIT_TOKEN_INVALID",
  "TARGET_INVALID",
  "CONFIG_INVALID",
  "MODULE_NOT_LOADED",
  "MODULE_WITHOUT_FUNCTIONS",
  "HISTORY_INVALID",
]);

const ofOpening: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "LOG_WITHOUT_DATABASE",
  "DATABASE_NOT_WRITABLE",
  "NOT_A_DATABASE",
  "DATABASE_DAMAGED",
  "MOVED_TO_POSTGRES",
  "DATABASE_UNREACHABLE",
  "DATABASE_ACCESS_DENIED",
  "NETWORK_FILE_SYSTEM",
  "SCHEMA_NEWER",
  "SCHEMA_OUTDATED",
  "SCHEMA_ALTERED",
  "SCHEMA_ORPHANED",
  "DRIVER_MISSING",
  "DRIVER_CONFLICT",
]);

export function exitCodeOf(error: unknown): ExitCode {
  if (!isHoldfastError(error)) return exitCodes.failed;
  const { code, retryable } = error;
  if (ofUsage.has(code)) return exitCodes.usage;
  if (code.endsWith("_NOT_FOUND")) return exitCodes.notFound;
  if (ofOpening.has(code)) return exitCodes.unopened;
  if (retryable) return exitCodes.passing;
  return originOf(code) === "domain" ? exitCodes.refused : exitCodes.failed;
}
