import { isHoldfastError } from "./errors.ts";
import type { ErrorCode } from "./errors.ts";

/**
 * Whom a failure tells about: `domain` answers what was asked, and the same
 * call would be answered so again; `store` says that the store, or who worked
 * with it, could not do its part, and so nothing about what was asked. A new
 * code does not compile without its place here.
 */
type ErrorOrigin = "store" | "domain";

const origins: Readonly<Record<ErrorCode, ErrorOrigin>> = {
  // Values, names and options given by the caller.
  ID_MALFORMED: "domain",
  NAME_INVALID: "domain",
  DURATION_INVALID: "domain",
  TIME_OUT_OF_RANGE: "domain",
  OPTION_INVALID: "domain",
  NOT_SERIALIZABLE: "domain",
  VALUE_TOO_LARGE: "domain",
  VALUE_MALFORMED: "store",
  PAYLOAD_CODEC_FAILED: "store",
  PARAMETER_INVALID: "store",
  OPERATION_INVALID: "store",
  ISOLATION_MISMATCH: "store",

  // Waiting.
  ABORTED: "store",
  DEADLINE_EXCEEDED: "store",
  QUEUE_FULL: "store",
  DATABASE_CLOSED: "store",

  // A statement or a transaction.
  CONSTRAINT_VIOLATED: "store",
  NUMBER_OUT_OF_RANGE: "store",
  STATEMENT_FAILED: "store",
  WRITE_IN_READ: "store",
  READ_ONLY: "store",
  READ_TOO_LONG: "store",
  CORRUPT_ROW: "store",
  DATABASE_DAMAGED: "store",
  DATABASE_MOVED: "store",
  DATABASE_BUSY: "store",
  DISK_FULL: "store",
  DISK_FAILED: "store",
  BATCH_ROLLED_BACK: "store",
  TRANSACTION_CONFLICT: "store",
  CONNECTION_LOST: "store",
  OUTCOME_UNKNOWN: "store",
  FLUSH_FAILED: "store",
  WRITES_STOPPED: "store",

  // Opening.
  DATABASE_PATH_INVALID: "store",
  DATABASE_NOT_FOUND: "store",
  LOG_WITHOUT_DATABASE: "store",
  DATABASE_NOT_WRITABLE: "store",
  NOT_A_DATABASE: "store",
  DATABASE_UNREACHABLE: "store",
  DATABASE_ACCESS_DENIED: "store",
  NETWORK_FILE_SYSTEM: "store",
  SCHEMA_NEWER: "store",
  SCHEMA_OUTDATED: "store",
  SCHEMA_ALTERED: "store",
  SCHEMA_ORPHANED: "store",
  SET_UP_CONFLICT: "store",
  DRIVER_MISSING: "store",
  DRIVER_CONFLICT: "store",

  // Executions.
  EXECUTION_NOT_FOUND: "domain",
  EXECUTION_EXISTS: "domain",
  EXECUTION_BEING_REMOVED: "store",
  EXECUTION_FINISHED: "domain",
  EXECUTION_RUNNING: "store",
  EXECUTION_PAUSED: "domain",
  EXECUTION_NOT_PAUSED: "domain",
  EXECUTION_CANCELLING: "domain",
  EXECUTION_PARKED: "domain",
  EXECUTION_NOT_PARKED: "domain",
  VERSION_CONFLICT: "store",
  EVENTS_INVALID: "domain",
  LOCK_EXPIRY_INVALID: "domain",
  LOCK_NOT_DUE: "store",
  LOCK_HELD: "store",
  LOCK_BLOCKED: "store",
  LOCK_LOST: "store",
  UNLOCK_REFUSED: "domain",
  DELAY_EXISTS: "domain",
  DELAY_NOT_FOUND: "domain",
  RESPONSE_CONFLICT: "domain",
  RESOLUTION_CONFLICT: "domain",
  NOT_EXTERNAL: "domain",
  SIGNAL_CONFLICT: "domain",
  FORK_POINT_INVALID: "domain",
  FORK_TOO_LARGE: "domain",
  NOT_FAILED: "domain",
  BACKTRACE_NOT_FOUND: "domain",
  BACKTRACE_EXISTS: "domain",
  TEXT_INVALID: "domain",
  CURSOR_INVALID: "domain",

  // Sessions, their leases and their queue.
  SESSION_NOT_FOUND: "domain",
  SESSION_DELETED: "domain",
  SESSION_MISMATCH: "domain",
  REVISION_CONFLICT: "store",
  TURN_CONFLICT: "domain",
  TURN_INVALID: "domain",
  NODE_NOT_FOUND: "domain",
  NODE_EXISTS: "domain",
  NODE_PARENT_UNKNOWN: "domain",
  USAGE_OVERFLOW: "domain",
  SESSION_FILE_INVALID: "domain",
  LEASE_LOST: "store",
  CLAIM_LOST: "store",
  BATCH_INVALID: "domain",
  SESSION_EXISTS: "domain",

  // Blobs and attachments.
  BLOB_NOT_FOUND: "domain",
  ARTIFACT_NOT_FOUND: "domain",
  ATTACHMENT_NOT_FOUND: "domain",
  ATTACHMENT_FAILED: "store",
  ATTACHMENT_FOLDER_WRONG: "store",
  ATTACHMENT_COMMITTED: "domain",

  // Processes.
  PROCESS_NOT_FOUND: "domain",
  PROCESS_CONFLICT: "domain",
  PROCESS_INVALID: "domain",
  PROCESS_TERMINAL: "domain",
  PROCESS_PRUNED: "domain",
  PROCESS_SPAWNED: "domain",
  PROCESS_ATTEMPTS_USED: "domain",
  PROCESS_LEASED: "store",
  PROCESS_LEASE_LOST: "store",
  EVENT_TYPE_UNDECLARED: "domain",
  EVENT_TYPE_RESERVED: "domain",
  EVENT_PAYLOAD_INVALID: "domain",
  EVENT_SELECTOR_UNMATCHED: "domain",
  REPLAY_KEY_REQUIRED: "domain",
  REPLAY_KEY_CONFLICT: "domain",
  REPLAY_KEY_RESERVED: "domain",
  EXTERNAL_REF_CONFLICT: "domain",
  HANDLE_NOT_GRANTED: "domain",

  // Effects.
  EFFECT_SCOPE_INVALID: "domain",
  EFFECT_INVALID: "domain",
  EFFECT_CONFLICT: "domain",
  EFFECT_NOT_RECORDED: "store",
  EFFECT_UNFINISHED: "store",
  EFFECT_LEASE_LOST: "store",
  EFFECT_RESULT_UNSTORABLE: "store",
  EFFECT_RESULT_REFUSED: "store",

  // Await-events and groups of effects.
  AWAIT_EVENT_NOT_FOUND: "domain",
  AWAIT_EVENT_REVOKED: "domain",
  AWAIT_TOKEN_INVALID: "domain",
  GROUP_INVALID: "domain",
  GROUP_CONFLICT: "domain",
  GROUP_NOT_FOUND: "domain",

  // Triggers.
  CRON_INVALID: "domain",
  TIME_ZONE_INVALID: "domain",
  INTERVAL_INVALID: "domain",
  SUBSCRIPTION_INVALID: "domain",
  SUBSCRIPTION_EXISTS: "domain",
  SUBSCRIPTION_NOT_FOUND: "domain",
  SUBSCRIPTION_CHANGED: "domain",
  OCCURRENCE_CONFLICT: "domain",
  OCCURRENCE_NOT_FOUND: "domain",

  // Heavy reads.
  TABLE_UNKNOWN: "domain",
  TARGET_INVALID: "domain",
  TARGET_EXISTS: "domain",
  TARGET_BUSY: "store",
  BACKUP_FAILED: "store",
};

export function originOf(code: ErrorCode): ErrorOrigin | undefined {
  return origins[code];
}

/**
 * True for what a function passes on of a store that could not do its part: it
 * says nothing about the effect, which the next call runs again. A code of
 * another version of the package is judged by whether it passes.
 */
export function isOfTheStore(thrown: unknown): boolean {
  if (!isHoldfastError(thrown)) return false;
  return thrown.retryable || originOf(thrown.code) === "store";
}
