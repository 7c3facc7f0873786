export type {} from "./kernel.ts";
export type {} from "./sessions.ts";
export { openPostgres } from "./backends/postgres/open.ts";
export type { PostgresOptions } from "./backends/postgres/options.ts";
export { attachmentFiles } from "./backends/files/attachment-files.ts";
