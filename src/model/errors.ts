/**
 * Every failure a caller can meet has a code. Codes are public API: they are
 * appended, never reused, and each has a heading in docs/errors.md (tidy
 * checks). The value says whether repeating the same call may succeed. Whether
 * a code tells about the store or about what was asked says error-origins.ts.
 */
const retryability = {
  // Values, names and options given by the caller.
  ID_MALFORMED: "final",
  NAME_INVALID: "final",
  DURATION_INVALID: "final",
  TIME_OUT_OF_RANGE: "final",
  OPTION_INVALID: "final",
  NOT_SERIALIZABLE: "final",
  VALUE_TOO_LARGE: "final",
  VALUE_MALFORMED: "final",
  PAYLOAD_CODEC_FAILED: "final",
  PARAMETER_INVALID: "final",
  OPERATION_INVALID: "final",
  ISOLATION_MISMATCH: "final",

  // Waiting.
  ABORTED: "final",
  DEADLINE_EXCEEDED: "retryable",
  QUEUE_FULL: "retryable",
  DATABASE_CLOSED: "final",

  // A statement or a transaction.
  CONSTRAINT_VIOLATED: "final",
  NUMBER_OUT_OF_RANGE: "final",
  STATEMENT_FAILED: "final",
  WRITE_IN_READ: "final",
  READ_ONLY: "final",
  READ_TOO_LONG: "final",
  CORRUPT_ROW: "final",
  DATABASE_DAMAGED: "final",
  DATABASE_MOVED: "final",
  DATABASE_BUSY: "retryable",
  DISK_FULL: "retryable",
  DISK_FAILED: "retryable",
  BATCH_ROLLED_BACK: "retryable",
  TRANSACTION_CONFLICT: "retryable",
  CONNECTION_LOST: "retryable",
  OUTCOME_UNKNOWN: "retryable",
  FLUSH_FAILED: "final",
  WRITES_STOPPED: "final",

  // Opening.
  DATABASE_PATH_INVALID: "final",
  DATABASE_NOT_FOUND: "final",
  LOG_WITHOUT_DATABASE: "final",
  DATABASE_NOT_WRITABLE: "final",
  NOT_A_DATABASE: "final",
  DATABASE_UNREACHABLE: "retryable",
  DATABASE_ACCESS_DENIED: "final",
  NETWORK_FILE_SYSTEM: "final",
  SCHEMA_NEWER: "final",
  SCHEMA_OUTDATED: "final",
  SCHEMA_ALTERED: "final",
  SCHEMA_ORPHANED: "final",
  SET_UP_CONFLICT: "final",
  DRIVER_MISSING: "final",
  DRIVER_CONFLICT: "final",

  // Executions.
  EXECUTION_NOT_FOUND: "final",
  EXECUTION_EXISTS: "final",
  EXECUTION_BEING_REMOVED: "retryable",
  EXECUTION_FINISHED: "final",
  EXECUTION_RUNNING: "retryable",
  EXECUTION_PAUSED: "final",
  EXECUTION_NOT_PAUSED: "final",
  EXECUTION_CANCELLING: "final",
  EXECUTION_PARKED: "final",
  EXECUTION_NOT_PARKED: "final",
  VERSION_CONFLICT: "final",
  EVENTS_INVALID: "final",
  LOCK_EXPIRY_INVALID: "final",
  LOCK_NOT_DUE: "retryable",
  LOCK_HELD: "retryable",
  LOCK_BLOCKED: "retryable",
  LOCK_LOST: "final",
  UNLOCK_REFUSED: "final",
  DELAY_EXISTS: "final",
  DELAY_NOT_FOUND: "final",
  RESPONSE_CONFLICT: "final",
  RESOLUTION_CONFLICT: "final",
  NOT_EXTERNAL: "final",
  SIGNAL_CONFLICT: "final",
  FORK_POINT_INVALID: "final",
  FORK_TOO_LARGE: "final",
  NOT_FAILED: "final",
  BACKTRACE_NOT_FOUND: "final",
  BACKTRACE_EXISTS: "final",
  TEXT_INVALID: "final",
  CURSOR_INVALID: "final",

  // Sessions, their leases and their queue.
  SESSION_NOT_FOUND: "final",
  SESSION_DELETED: "final",
  SESSION_MISMATCH: "final",
  REVISION_CONFLICT: "retryable",
  TURN_CONFLICT: "final",
  TURN_INVALID: "final",
  NODE_NOT_FOUND: "final",
  NODE_EXISTS: "final",
  NODE_PARENT_UNKNOWN: "final",
  USAGE_OVERFLOW: "final",
  SESSION_FILE_INVALID: "final",
  LEASE_LOST: "retryable",
  CLAIM_LOST: "retryable",
  BATCH_INVALID: "final",
  SESSION_EXISTS: "final",

  // Blobs and attachments.
  BLOB_NOT_FOUND: "final",
  ARTIFACT_NOT_FOUND: "final",
  ATTACHMENT_NOT_FOUND: "final",
  ATTACHMENT_FAILED: "retryable",
  ATTACHMENT_FOLDER_WRONG: "final",
  ATTACHMENT_COMMITTED: "final",

  // Processes.
  PROCESS_NOT_FOUND: "final",
  PROCESS_CONFLICT: "final",
  PROCESS_INVALID: "final",
  PROCESS_TERMINAL: "final",
  PROCESS_PRUNED: "final",
  PROCESS_SPAWNED: "final",
  PROCESS_ATTEMPTS_USED: "final",
  PROCESS_LEASED: "retryable",
  PROCESS_LEASE_LOST: "retryable",
  EVENT_TYPE_UNDECLARED: "final",
  EVENT_TYPE_RESERVED: "final",
  EVENT_PAYLOAD_INVALID: "final",
  EVENT_SELECTOR_UNMATCHED: "final",
  REPLAY_KEY_REQUIRED: "final",
  REPLAY_KEY_CONFLICT: "final",
  REPLAY_KEY_RESERVED: "final",
  EXTERNAL_REF_CONFLICT: "final",
  HANDLE_NOT_GRANTED: "final",

  // Effects.
  EFFECT_SCOPE_INVALID: "final",
  EFFECT_INVALID: "final",
  EFFECT_CONFLICT: "final",
  EFFECT_NOT_RECORDED: "final",
  EFFECT_UNFINISHED: "retryable",
  EFFECT_LEASE_LOST: "retryable",
  EFFECT_RESULT_UNSTORABLE: "final",
  EFFECT_RESULT_REFUSED: "final",

  // Await-events and groups of effects.
  AWAIT_EVENT_NOT_FOUND: "final",
  AWAIT_EVENT_REVOKED: "final",
  AWAIT_TOKEN_INVALID: "final",
  GROUP_INVALID: "final",
  GROUP_CONFLICT: "final",
  GROUP_NOT_FOUND: "final",

  // Triggers.
  CRON_INVALID: "final",
  TIME_ZONE_INVALID: "final",
  INTERVAL_INVALID: "final",
  SUBSCRIPTION_INVALID: "final",
  SUBSCRIPTION_EXISTS: "final",
  SUBSCRIPTION_NOT_FOUND: "final",
  SUBSCRIPTION_CHANGED: "final",
  OCCURRENCE_CONFLICT: "final",
  OCCURRENCE_NOT_FOUND: "final",

  // Heavy reads.
  TABLE_UNKNOWN: "final",
  TARGET_INVALID: "final",
  TARGET_EXISTS: "final",
  TARGET_BUSY: "retryable",
  BACKUP_FAILED: "retryable",
} as const;

export type ErrorCode = keyof typeof retryability;

export const errorCodes: readonly ErrorCode[] = Object.keys(
  retryability,
) as ErrorCode[];

/** Facts about a failure: ids, paths, sizes and hashes, never payload values. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

const brand = Symbol.for("holdfast.error");

/**
 * The one error class of Holdfast. Match on `code`; the message is for people
 * and may change. `retryable` says whether repeating the same call, with the
 * same ids and keys, is safe and may succeed.
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
    this.retryable = retryability[code] === "retryable";
    Object.defineProperty(this, brand, { value: true });
  }

  override get name(): string {
    return "HoldfastError";
  }
}

/** Recognises our errors across realms and copies of the package. */
export function isHoldfastError(value: unknown): value is HoldfastError {
  return typeof value === "object" && value !== null && brand in value;
}

/** The exhaustive end of a switch: compiles only when every case is handled. */
export function unreachable(value: never): never {
  throw new Error(`Unreachable case: ${String(value)}`);
}
