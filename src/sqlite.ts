export { openSqlite } from "./backends/sqlite/open.ts";
export type { SqliteDatabase } from "./backends/sqlite/sqlite-database.ts";
export type { SqliteLimits, SqliteOptions } from "./backends/sqlite/options.ts";
export type { BackupResult } from "./backends/sqlite/heavy/backup.ts";
export type { CheckReport } from "./backends/sqlite/heavy/check.ts";
export type { RowKey, RowPage } from "./backends/sqlite/heavy/export-rows.ts";
export type {
  HeavyOptions,
  Progress,
} from "./backends/sqlite/heavy/heavy-call.ts";
export type {
  CheckOptions,
  RowsOptions,
} from "./backends/sqlite/heavy/heavy-reads.ts";
export type { StoredSize } from "./backends/sqlite/heavy/sizes.ts";
export { sessionFiles } from "./backends/sqlite/session-files/session-files.ts";
export type {
  SessionFile,
  SessionFiles,
  SessionFilesOptions,
} from "./backends/sqlite/session-files/session-files.ts";
export {
  exportSession,
  importSession,
} from "./backends/sqlite/session-files/session-export.ts";
export type { TransferOptions } from "./backends/sqlite/session-files/session-export.ts";
export type { DriverName } from "./backends/sqlite/drivers/drivers.ts";
export { attachmentFiles } from "./backends/files/attachment-files.ts";
export type { AttachmentFilesOptions } from "./backends/files/attachment-files.ts";
