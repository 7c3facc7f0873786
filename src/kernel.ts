export type { Clock } from "./model/time/clock.ts";
export type { Duration } from "./model/time/durations.ts";
export type { Entropy } from "./model/entropy.ts";
export { idSource } from "./model/ids/id-source.ts";
export type { IdSource } from "./model/ids/id-source.ts";
export type { PayloadCodec } from "./model/values/payload-codec.ts";
export type { DeploymentId, OwnerId, ExecutorId, RunId } from "./model/ids/prefixed-id.ts";
export type { StoredError } from "./model/values/stored-error.ts";
export type {
  AppMigration,
  ChangeHint,
  Database,
  Durability,
  OperationTime,
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
export { done, operation, rollbackWith, row, rows, run } from "./sql/operation.ts";
export type { Operation, Request as TxRequest, Tx } from "./sql/operation.ts";
export { sql } from "./sql/statement.ts";
export type { SqlValue, Statement } from "./sql/statement.ts";
export type { StoreOptions } from "./stores/context.ts";
export type { Damaged } from "./stores/damage.ts";
export type { Page, PageOptions } from "./stores/list.ts";
export type { Method } from "./stores/method.ts";
export type { SweepOptions } from "./stores/removal.ts";
