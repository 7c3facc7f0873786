export { openPostgres } from "./backends/postgres/open.ts";
export type { PostgresOptions } from "./backends/postgres/options.ts";
