import type { Encoded } from "../../model/values/encoded.ts";
import { rows } from "../../sql/operation.ts";
import { integersOf } from "../../sql/dialect.ts";
import { sql } from "../../sql/statement.ts";
import { tableCheck } from "../table-check.ts";
import type { TableCheck } from "../table-check.ts";

interface HeadRow {
  readonly execution: number;
  readonly position: number;
  readonly size: number;
}

interface Stored {
  readonly execution: number;
  readonly size: number;
  readonly position: number;
}

const head = tableCheck<HeadRow>({
  table: "holdfast_stream",
  select: sql`SELECT t.execution, t.id, t.run_version, t.position, t.size`,
  from: sql`FROM holdfast_stream t`,
  order: sql`t.execution`,
  behind: ({ execution }) => sql`t.execution > ${execution}`,
  keyOf: ({ execution }) => String(execution),
  *partners(found) {
    const stored = yield* rows<Stored>(sql`
      SELECT execution, CAST(SUM(size) AS BIGINT) AS size, MAX(position + chunks - 1) AS position FROM holdfast_stream_part
      WHERE execution IN ${integersOf(found.map(({ execution }) => execution))} GROUP BY execution`);
    const byExecution = new Map(stored.map((each) => [each.execution, each]));
    return ({ execution, size, position }) => {
      const parts = byExecution.get(execution) ?? { size: 0, position: 0 };
      if (parts.size !== size) return "Its size is not that of its parts.";
      return parts.position > position ? "A part of it lies behind its newest chunk." : undefined;
    };
  },
});

interface PartRow {
  readonly key: number;
  readonly execution: number;
  readonly position: number;
  readonly chunks: number;
  readonly size: number;
  readonly payload: Encoded;
  readonly owner: number | null;
}

const part = tableCheck<PartRow>({
  table: "holdfast_stream_part",
  select: sql`
    SELECT t.key, t.execution, t.position, t.chunks, t.run_version, t.continuation, t.call, t.step, t.attempt, t.at,
      t.size, t.supersedes, t.state, t.payload, s.execution AS owner`,
  from: sql`FROM holdfast_stream_part t LEFT JOIN holdfast_stream s ON s.execution = t.execution`,
  order: sql`t.key`,
  behind: ({ key }) => sql`t.key > ${key}`,
  weight: sql`length(t.payload)`,
  keyOf: ({ execution, position }) => `${execution}#${position}`,
  judge({ owner, chunks, size, payload }, { decode }) {
    if (owner === null) return "Its run has no output.";
    if (payload.length !== size) return "Its size is not that of its text.";
    const values = decode(payload);
    const isWhole = Array.isArray(values) && values.length === chunks;
    return isWhole ? undefined : "It has another number of chunks than it says.";
  },
});

export const streamChecks: readonly TableCheck[] = [head, part];
