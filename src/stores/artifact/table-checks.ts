import { sql } from "../../sql/statement.ts";
import { referring } from "../blob/table-checks.ts";
import type { TableCheck } from "../table-check.ts";
import { artifactKey } from "./pointer.ts";

interface ArtifactRow {
  readonly namespace: string;
  readonly name: string;
  readonly blob: string;
}

const artifact: TableCheck = referring<ArtifactRow>({
  table: "holdfast_artifact",
  select: sql`SELECT t.namespace, t.name, t.blob, t.put_at`,
  from: sql`FROM holdfast_artifact t`,
  order: sql`t.namespace, t.name`,
  behind: (last) =>
    sql`(t.namespace, t.name) > (${last.namespace}, ${last.name})`,
  keyOf: artifactKey,
});

export const artifactChecks: readonly TableCheck[] = [artifact];
