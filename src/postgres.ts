export { openPostgres } from "./backends/postgres/open.ts";
export type { PostgresOptions } from "./backends/postgres/options.ts";
export { attachmentFiles } from "./backends/files/attachment-files.ts";
export type { AttachmentFilesOptions } from "./backends/files/attachment-files.ts";
