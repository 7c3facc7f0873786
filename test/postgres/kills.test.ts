import { manualClock } from "../../src/model/time/clock.ts";
import { prepareActions } from "../crash/prepare-actions.ts";
import { isCompared } from "../crash/dump.ts";
import { killSuite } from "../crash/kills.suite.ts";
import { Place, until, urlWith } from "./place.ts";
import type { Shell } from "./place.ts";

/** One schema serves all kills: what was prepared is put back before each. */
killSuite(async () => {
  const place = new Place();
  const clock = manualClock(1_000);
  const database = await place.open({ clock });
  const orders = await prepareActions(database);
  const shell = place.shell();
  const putBack = await kept(shell, place.schema);
  const children = `${place.app}_child`;
  const url = urlWith((parsed) => {
    parsed.searchParams.set("application_name", children);
  }, place.url);
  return {
    orders,
    provesDeath: false,
    lanes: 1,
    async renewed() {
      await putBack.rows();
      return `${url}#${place.schema}`;
    },
    async opened() {
      // The server notices the death of a client by itself, and ends what it had begun.
      await until(async () => !(await isConnected(shell, children)));
      await putBack.keys();
      clock.set(2_000);
      return { database, clock, close: async () => undefined };
    },
    dispose: () => place.dispose(),
  };
});

async function isConnected(shell: Shell, app: string): Promise<boolean> {
  const found = await shell`
    SELECT 1 FROM pg_stat_activity WHERE application_name = ${app} LIMIT 1`;
  return found.length > 0;
}

interface Kept {
  readonly rows: () => Promise<void>;
  /** Keys count on where the rows end: those that a killed transaction drew are drawn again. */
  readonly keys: () => Promise<void>;
}

/** Keeps copies of all rows, and tells how to put them back. */
async function kept(shell: Shell, schema: string): Promise<Kept> {
  const columns = await shell<{ table: string; key: string | null }[]>`
    SELECT table_name AS table,
      max(column_name) FILTER (WHERE is_identity = 'YES') AS key
    FROM information_schema.columns WHERE table_schema = ${schema} GROUP BY 1`;
  const tables = columns.filter(({ table }) => isCompared(table));
  for (const { table } of tables)
    await shell.unsafe(`CREATE TEMP TABLE kept_${table} AS TABLE ${table}`);
  const keys = tables
    .filter(({ key }) => key !== null)
    .map(
      ({ table, key }) =>
        `SELECT setval(pg_get_serial_sequence('${table}', '${key}'), coalesce(max(${key}), 0) + 1, false) FROM ${table}`,
    )
    .join(";");
  const rows = tables
    .map(
      ({ table }) =>
        `DELETE FROM ${table}; INSERT INTO ${table} OVERRIDING SYSTEM VALUE TABLE kept_${table}`,
    )
    .join(";");
  const said = (text: string) => async (): Promise<void> => {
    await shell.unsafe(text);
  };
  return { rows: said(`${rows};${keys}`), keys: said(keys) };
}
