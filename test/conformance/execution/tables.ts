import { rows, run } from "../../../src/sql/operation.ts";
import type { Tx } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import type { EventRow, responseOf } from "../../../src/stores/execution/event-row.ts";
import type { StateRow } from "../../../src/stores/execution/state-row.ts";

interface ExecutionRow extends StateRow {
  readonly input_hash: string;
  readonly created_at: number;
  readonly scheduled_at: number;
  readonly concurrency_key: string | null;
  readonly deadline_at: number | null;
  readonly progress: string | null;
  readonly pruned_before: number;
}

interface EventTableRow extends EventRow {
  readonly seq: number;
  readonly execution: number;
  readonly inbox: string | null;
  readonly ordinal: number | null;
  readonly withdrawn: string | null;
}

type ResponseTableRow = Parameters<typeof responseOf>[0] & {
  readonly key: number;
  readonly execution: number;
  readonly ordinal: number;
  readonly child: number | null;
  readonly value_hash: string | null;
  readonly read_by: number | null;
};

interface DelayRow {
  readonly key: number;
  readonly id: string;
  readonly execution: number;
  readonly inbox: string;
  readonly expires_at: number;
  readonly is_paused: number;
}

/** Every row that the operations on executions write. */
export interface Tables {
  readonly executions: readonly ExecutionRow[];
  readonly events: readonly EventTableRow[];
  readonly responses: readonly ResponseTableRow[];
  readonly delays: readonly DelayRow[];
  readonly tags: readonly {
    readonly tag: string;
    readonly execution: number;
  }[];
  readonly functions: readonly { readonly name: string }[];
}

/** All of them as they are at one moment. */
export function readTables(database: Database): Promise<Tables> {
  return database.read("readTables", function* (): Tx<Tables> {
    return {
      executions: yield* rows<ExecutionRow>(sql`SELECT * FROM holdfast_execution ORDER BY key`),
      events: yield* rows<EventTableRow>(
        sql`SELECT * FROM holdfast_execution_event ORDER BY execution, version`,
      ),
      responses: yield* rows<ResponseTableRow>(
        sql`SELECT * FROM holdfast_execution_response ORDER BY execution, seq`,
      ),
      delays: yield* rows<DelayRow>(sql`SELECT * FROM holdfast_execution_delay ORDER BY id`),
      tags: yield* rows<Tables["tags"][number]>(
        sql`SELECT * FROM holdfast_execution_tag ORDER BY execution, tag`,
      ),
      functions: yield* rows<Tables["functions"][number]>(
        sql`SELECT * FROM holdfast_execution_limit ORDER BY name`,
      ),
    };
  });
}

/** Makes room for the next sequence without opening another database. */
export function clearTables(database: Database): Promise<void> {
  return database.write("clearTables", function* () {
    yield* run(sql`DELETE FROM holdfast_execution_tag`);
    yield* run(sql`DELETE FROM holdfast_execution_delay`);
    yield* run(sql`DELETE FROM holdfast_execution_response`);
    yield* run(sql`DELETE FROM holdfast_execution_event`);
    yield* run(sql`DELETE FROM holdfast_execution`);
    yield* run(sql`DELETE FROM holdfast_execution_limit`);
  });
}

/**
 * The tables as text that is the same on every backend: executions by id, not
 * by key, since sequences have gaps on Postgres; no rows' own keys; and no
 * name of this process.
 */
export function comparable(tables: Tables, owner: string): readonly string[] {
  const ids = new Map(tables.executions.map(({ key, id }) => [key, id]));
  const idOf = (key: number | null): string | null =>
    key === null ? null : (ids.get(key) ?? `nobody (${key})`);
  const lines: readonly object[] = [
    ...tables.executions.map((row) => ({
      ...row,
      key: undefined,
      parent: idOf(row.parent),
    })),
    ...tables.events.map((row) => ({
      ...row,
      seq: undefined,
      execution: idOf(row.execution),
    })),
    ...tables.responses.map((row) => ({
      ...row,
      key: undefined,
      execution: idOf(row.execution),
      child: idOf(row.child),
    })),
    ...tables.delays.map((row) => ({
      ...row,
      key: undefined,
      execution: idOf(row.execution),
    })),
    ...tables.tags.map((row) => ({ ...row, execution: idOf(row.execution) })),
    ...tables.functions,
  ];
  return lines.map((line) => JSON.stringify(line).replaceAll(owner, "Own")).toSorted();
}
