import { safely } from "./safely.ts";

/**
 * The kind of a failure. Every failure a caller can meet has a code. Codes are public API: new
 * codes are appended, and no code is reused. Each has a heading in docs/errors.md, which a tidy
 * test checks.
 *
 * `retryable` is true when repeating the same call may succeed. `origin` names the subject of the
 * failure. A `domain` failure answers the request, and the same call gets the same answer again. A
 * `store` failure says that the store or another caller got in the way, so it says nothing about
 * the request.
 */
interface ErrorKind {
  readonly retryable: boolean;
  readonly origin: "store" | "domain";
}

const kinds = {
  refused: { retryable: false, origin: "domain" },
  failed: { retryable: false, origin: "store" },
  passing: { retryable: true, origin: "store" },
} as const satisfies Readonly<Record<string, ErrorKind>>;

const errors = {
  // Values, names and options of a call.
  ID_MALFORMED: "refused",
  NAME_INVALID: "refused",
  DURATION_INVALID: "refused",
  TIME_OUT_OF_RANGE: "refused",
  OPTION_INVALID: "refused",
  NOT_SERIALIZABLE: "refused",
  VALUE_TOO_LARGE: "refused",
  VALUE_MALFORMED: "failed",
  PAYLOAD_CODEC_FAILED: "failed",
  PAYLOAD_CODEC_MISSING: "failed",
  PAYLOAD_CODEC_WRONG: "failed",
  PARAMETER_INVALID: "failed",
  OPERATION_INVALID: "failed",
  ISOLATION_MISMATCH: "failed",

  // Waiting.
  ABORTED: "failed",
  DEADLINE_EXCEEDED: "passing",
  QUEUE_FULL: "passing",
  DATABASE_CLOSED: "failed",

  // A statement or a transaction.
  CONSTRAINT_VIOLATED: "failed",
  NUMBER_OUT_OF_RANGE: "failed",
  STATEMENT_FAILED: "failed",
  PREPARED_STATEMENT_LOST: "failed",
  STATEMENT_INTERRUPTED: "passing",
  WRITE_IN_READ: "failed",
  READ_ONLY: "failed",
  READ_TOO_LONG: "failed",
  CORRUPT_ROW: "failed",
  DATABASE_DAMAGED: "failed",
  DATABASE_MOVED: "failed",
  DATABASE_BUSY: "passing",
  DISK_FULL: "passing",
  DISK_FAILED: "passing",
  BATCH_ROLLED_BACK: "passing",
  TRANSACTION_CONFLICT: "passing",
  CONNECTION_LOST: "passing",
  OUTCOME_UNKNOWN: "passing",
  FLUSH_FAILED: "failed",
  WRITES_STOPPED: "failed",
  MOVED_TO_POSTGRES: "failed",

  // Opening.
  DATABASE_PATH_INVALID: "failed",
  DATABASE_NOT_FOUND: "failed",
  LOG_WITHOUT_DATABASE: "failed",
  DATABASE_NOT_WRITABLE: "failed",
  NOT_A_DATABASE: "failed",
  DATABASE_UNREACHABLE: "passing",
  DATABASE_ACCESS_DENIED: "failed",
  NETWORK_FILE_SYSTEM: "failed",
  SCHEMA_NEWER: "failed",
  SCHEMA_OUTDATED: "failed",
  SCHEMA_ALTERED: "failed",
  SCHEMA_ORPHANED: "failed",
  SET_UP_CONFLICT: "failed",
  DRIVER_MISSING: "failed",
  DRIVER_CONFLICT: "failed",

  // Executions.
  EXECUTION_NOT_FOUND: "refused",
  EXECUTION_EXISTS: "refused",
  EXECUTION_BEING_REMOVED: "passing",
  EXECUTION_ERASED: "refused",
  EXECUTION_UNFINISHED: "refused",
  EXECUTION_FINISHED: "refused",
  EXECUTION_CHANGED_INSIDE: "refused",
  EXECUTION_RUNNING: "passing",
  EXECUTION_PAUSED: "refused",
  EXECUTION_NOT_PAUSED: "refused",
  EXECUTION_CANCELLING: "refused",
  EXECUTION_PARKED: "refused",
  EXECUTION_NOT_PARKED: "refused",
  VERSION_CONFLICT: "failed",
  EVENTS_INVALID: "refused",
  LOCK_EXPIRY_INVALID: "refused",
  LOCK_NOT_DUE: "passing",
  LOCK_HELD: "passing",
  LOCK_BLOCKED: "passing",
  LOCK_INCOMPATIBLE: "refused",
  LOCK_LOST: "failed",
  UNLOCK_REFUSED: "refused",
  DELAY_EXISTS: "refused",
  DELAY_NOT_FOUND: "refused",
  RESPONSE_CONFLICT: "refused",
  RESOLUTION_CONFLICT: "refused",
  NOT_EXTERNAL: "refused",
  ANSWER_INVALID: "refused",
  SIGNAL_CONFLICT: "refused",
  MESSAGE_UNREAD: "refused",
  FORK_POINT_INVALID: "refused",
  FORK_TOO_LARGE: "refused",
  NOT_FAILED: "refused",
  BACKTRACE_NOT_FOUND: "refused",
  BACKTRACE_EXISTS: "refused",
  TEXT_INVALID: "refused",
  CURSOR_INVALID: "refused",

  // The code of workflows and activities.
  FUNCTION_CONFLICT: "refused",
  FUNCTION_MISMATCH: "refused",
  SCHEDULE_CONFLICT: "refused",
  SCHEDULE_NOT_FOUND: "refused",
  INPUT_INVALID: "refused",
  NONDETERMINISM: "refused",
  CTX_IN_STEP: "refused",
  JOIN_SET_CLOSED: "refused",
  JOIN_SET_EXISTS: "refused",
  CONTINUATION_LOST: "refused",
  RUN_CANCELLED: "refused",
  RUN_ENDED: "refused",
  RUN_KEEPS_KILLING_WORKERS: "refused",
  STEP_TIMED_OUT: "passing",
  ATTEMPT_TIMED_OUT: "passing",

  // Sessions, their leases and their queue.
  SESSION_NOT_FOUND: "refused",
  SESSION_DELETED: "refused",
  SESSION_MISMATCH: "refused",
  REVISION_CONFLICT: "passing",
  TURN_CONFLICT: "refused",
  TURN_INVALID: "refused",
  NODE_NOT_FOUND: "refused",
  NODE_EXISTS: "refused",
  NODE_PARENT_UNKNOWN: "refused",
  USAGE_OVERFLOW: "refused",
  SESSION_FILE_INVALID: "refused",
  LEASE_LOST: "passing",
  CLAIM_LOST: "passing",
  BATCH_INVALID: "refused",
  SESSION_OWNED: "refused",
  SESSION_EXISTS: "refused",

  // Blobs and attachments.
  BLOB_NOT_FOUND: "refused",
  ARTIFACT_NOT_FOUND: "refused",
  ATTACHMENT_NOT_FOUND: "refused",
  ATTACHMENT_FAILED: "passing",
  ATTACHMENT_FOLDER_WRONG: "failed",
  ATTACHMENT_COMMITTED: "refused",

  // Processes.
  PROCESS_NOT_FOUND: "refused",
  PROCESS_CONFLICT: "refused",
  PROCESS_INVALID: "refused",
  PROCESS_TERMINAL: "refused",
  PROCESS_PRUNED: "refused",
  PROCESS_SPAWNED: "refused",
  PROCESS_ATTEMPTS_USED: "refused",
  PROCESS_LEASED: "passing",
  PROCESS_LEASE_LOST: "passing",
  EVENT_TYPE_UNDECLARED: "refused",
  EVENT_TYPE_RESERVED: "refused",
  EVENT_PAYLOAD_INVALID: "refused",
  EVENT_SELECTOR_UNMATCHED: "refused",
  REPLAY_KEY_REQUIRED: "refused",
  REPLAY_KEY_CONFLICT: "refused",
  REPLAY_KEY_RESERVED: "refused",
  EXTERNAL_REF_CONFLICT: "refused",
  HANDLE_NOT_GRANTED: "refused",

  // Effects.
  EFFECT_SCOPE_INVALID: "refused",
  EFFECT_INVALID: "refused",
  EFFECT_CONFLICT: "refused",
  EFFECT_NOT_RECORDED: "failed",
  EFFECT_UNFINISHED: "passing",
  EFFECT_LEASE_LOST: "passing",
  EFFECT_RESULT_UNSTORABLE: "failed",
  EFFECT_RESULT_REFUSED: "failed",

  // Await-events.
  AWAIT_EVENT_NOT_FOUND: "refused",
  AWAIT_EVENT_REVOKED: "refused",
  AWAIT_TOKEN_INVALID: "refused",

  // Triggers.
  CRON_INVALID: "refused",
  TIME_ZONE_INVALID: "refused",
  INTERVAL_INVALID: "refused",
  SUBSCRIPTION_INVALID: "refused",
  SUBSCRIPTION_EXISTS: "refused",
  SUBSCRIPTION_NOT_FOUND: "refused",
  SUBSCRIPTION_CHANGED: "refused",
  OCCURRENCE_CONFLICT: "refused",
  OCCURRENCE_NOT_FOUND: "refused",

  // Tests.
  RUN_STUCK: "refused",
  HISTORY_INVALID: "refused",

  // Heavy reads.
  TABLE_UNKNOWN: "refused",
  TARGET_INVALID: "refused",
  TARGET_EXISTS: "refused",
  TARGET_BUSY: "passing",
  BACKUP_FAILED: "passing",

  // The command line.
  CONFIG_INVALID: "refused",
  MODULE_NOT_LOADED: "refused",
  MODULE_WITHOUT_FUNCTIONS: "refused",
  FILE_NOT_WRITTEN: "refused",

  // Moving from SQLite to Postgres.
  TARGET_NOT_EMPTY: "refused",
  MOVE_UNDER_WAY: "passing",
  MOVE_ELSEWHERE: "refused",
  MOVE_MISMATCH: "failed",
  MOVE_ARRIVED: "refused",
  MOVE_NOT_BEGUN: "refused",
} as const;

export type ErrorCode = keyof typeof errors;

export const errorCodes: readonly ErrorCode[] = Object.keys(errors) as ErrorCode[];

/** Facts about a failure: ids, paths, sizes and hashes, never payload values. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

const brand = Symbol.for("holdfast.error");

/**
 * The error class of Holdfast. Match on `code`; the message is for people and may change.
 * `retryable` is true when repeating the same call, with the same ids and keys, is safe and may
 * succeed.
 */
export class HoldfastError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  readonly retryable: boolean;

  constructor(
    code: ErrorCode,
    message: string,
    details: ErrorDetails = {},
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
    this.code = code;
    this.details = details;
    this.retryable = kinds[errors[code]].retryable;
    Object.defineProperty(this, brand, { value: true });
  }

  override get name(): string {
    return "HoldfastError";
  }
}

/** True for an error of Holdfast, also from another realm or another copy of the package. */
export function isHoldfastError(value: unknown): value is HoldfastError {
  if (typeof value !== "object" || value === null) return false;
  return safely(() => {
    // Reads the fields too, so that the caller can read them safely.
    const { code, retryable } = value as Partial<HoldfastError>;
    return brand in value && typeof code === "string" && typeof retryable === "boolean";
  }, false);
}

export function originOf(code: ErrorCode): ErrorKind["origin"] | undefined {
  // An error from another version of the package may have a code unknown to this one.
  const kind = (errors as Partial<typeof errors>)[code];
  return kind && kinds[kind].origin;
}

/**
 * True for an error by which a store failed to do its part, passed on by the user's function. It
 * says nothing about the effect, so the next call runs the effect again. A code from another
 * version of the package counts when it is retryable.
 */
export function isOfTheStore(thrown: unknown): boolean {
  if (!isHoldfastError(thrown)) return false;
  return thrown.retryable || originOf(thrown.code) === "store";
}

const finalCodes: ReadonlySet<string> = new Set<ErrorCode>([
  "MOVED_TO_POSTGRES",
  // The disk failed, or the file was removed: only reopening the database helps.
  "FLUSH_FAILED",
  "WRITES_STOPPED",
  // The pooler lends sessions: some calls succeed by luck, and no run can rely on the next one.
  "PREPARED_STATEMENT_LOST",
]);

/** True when only opening the database again helps. */
export function isFinal(error: unknown): error is HoldfastError {
  return isHoldfastError(error) && isFinalCode(error.code);
}

export function isFinalCode(code: unknown): boolean {
  return typeof code === "string" && finalCodes.has(code);
}

/** The exhaustive end of a switch. It compiles only when every case is handled. */
export function unreachable(value: never): never {
  throw new Error(`Unreachable case: ${String(value)}`);
}
