export { sql } from "./sql/statement.ts";
export type { Parameter, SqlValue, Statement } from "./sql/statement.ts";
export {
  done,
  operation,
  rollbackWith,
  row,
  rows,
  run,
} from "./sql/operation.ts";
export type {
  Change,
  Done,
  Operation,
  OperationForms,
  Tx,
} from "./sql/operation.ts";
export {
  autoKey,
  belowHorizon,
  bytes,
  feedTransaction,
  integer,
  lockRow,
  skipLocked,
  strict,
  text,
} from "./sql/dialect.ts";
export type { Dialect } from "./sql/dialect.ts";
export type {
  CallInput,
  CallOutput,
  Callee,
  ChangeHint,
  Database,
  Durability,
  Latency,
  Liveness,
  Stats,
  WaitOptions,
  Warning,
} from "./stores/database.ts";
export type { Clock } from "./model/clock.ts";
export type { Duration } from "./model/durations.ts";
export type { OwnerId } from "./model/prefixed-id.ts";
