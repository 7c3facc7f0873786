export type {} from "./kernel.ts";
export type {} from "./sessions.ts";
export { openSqlite } from "./backends/sqlite/open.ts";
export type { SqliteDatabase } from "./backends/sqlite/sqlite-database.ts";
export type { SqliteOptions } from "./backends/sqlite/options.ts";
export type { CheckReport } from "./backends/sqlite/heavy/check.ts";
export type { RowPage } from "./backends/sqlite/heavy/export-rows.ts";
export type { StoredSize } from "./backends/sqlite/heavy/sizes.ts";
export { sessionFiles } from "./backends/sqlite/session-files/session-files.ts";
export type {
  SessionFile,
  SessionFiles,
} from "./backends/sqlite/session-files/session-files.ts";
export {
  exportSession,
  importSession,
} from "./backends/sqlite/session-files/session-export.ts";
export { attachmentFiles } from "./backends/files/attachment-files.ts";
