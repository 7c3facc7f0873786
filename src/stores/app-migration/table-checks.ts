import { textsOf } from "../../sql/dialect.ts";
import { rows } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { distinct, tableCheck } from "../table-check.ts";
import type { TableCheck } from "../table-check.ts";

interface AppMigrationRow {
  readonly app: string;
  readonly position: number;
}

interface AppRow {
  readonly app: string;
  readonly count: number;
  readonly last: number;
}

const appMigration = tableCheck<AppMigrationRow>({
  table: "holdfast_app_migration",
  select: sql`SELECT t.app, t.position, t.name, t.applied_at`,
  from: sql`FROM holdfast_app_migration t`,
  order: sql`t.app, t.position`,
  behind: ({ app, position }) => sql`(t.app, t.position) > (${app}, ${position})`,
  keyOf: ({ app, position }) => `${app}/${position}`,
  *partners(found) {
    const apps = distinct(found, ({ app }) => app);
    const counted = yield* rows<AppRow>(sql`
      SELECT app, COUNT(*) AS count, MAX(position) AS last FROM holdfast_app_migration
      WHERE app IN ${textsOf(apps)} GROUP BY app`);
    const gaps = new Set(
      counted.flatMap(({ app, count, last }) => (last === count - 1 ? [] : app)),
    );
    return ({ app }) => (gaps.has(app) ? "Its app lacks migrations before the last." : undefined);
  },
});

export const appMigrationChecks: readonly TableCheck[] = [appMigration];
