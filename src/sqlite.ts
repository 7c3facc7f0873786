export { openSqlite } from "./backends/sqlite/open.ts";
export type { SqliteLimits, SqliteOptions } from "./backends/sqlite/options.ts";
