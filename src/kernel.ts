export type { ByteTools, ByteHash } from "./model/values/byte-tools.ts";
export type { Clock, Now } from "./model/time/clock.ts";
export type { Duration } from "./model/time/durations.ts";
export type { Encoded } from "./model/values/encoded.ts";
export type { Entropy } from "./model/entropy.ts";
export { idSource } from "./model/ids/id-source.ts";
export type { IdSource } from "./model/ids/id-source.ts";
export type { PayloadCodec } from "./model/values/payload-codec.ts";
export type {
  DeploymentId,
  OwnerId,
  ExecutorId,
  RunId,
} from "./model/ids/prefixed-id.ts";
export type { StoredError } from "./model/values/stored-error.ts";
export type { ValueLimits } from "./model/values/value-limits.ts";
export type {
  AppMigration,
  CallInput,
  CallOutput,
  Callee,
  ChangeHint,
  Database,
  Durability,
  Interest,
  Latency,
  Liveness,
  SetUpReport,
  Stats,
  WaitOptions,
  Warning,
  WriteOptions,
} from "./sql/database.ts";
export {
  autoKey,
  belowHorizon,
  bytes,
  feedTransaction,
  integer,
  integersOf,
  lockRow,
  skipLocked,
  strict,
  text,
  textsOf,
} from "./sql/dialect.ts";
export type { Dialect } from "./sql/dialect.ts";
export type { Isolation, IsolationMarks } from "./sql/isolation.ts";
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
export { sql } from "./sql/statement.ts";
export type { Parameter, SqlValue, Statement } from "./sql/statement.ts";
export type { StoreOptions } from "./stores/context.ts";
export type { Damaged, Sifted } from "./stores/damage.ts";
export type { Page, PageOptions } from "./stores/list.ts";
export type { Method } from "./stores/method.ts";
export type { SweepOptions } from "./stores/removal.ts";
export type { DamagedRow } from "./stores/table-check.ts";
