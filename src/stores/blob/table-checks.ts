import { isBlobHash, verifiedBlob } from "../../model/blob.ts";
import type { StoredBlob } from "../../model/blob.ts";
import type { Statement } from "../../sql/statement.ts";
import { sql } from "../../sql/statement.ts";
import { distinct, byKey, tableCheck } from "../table-check.ts";
import type { TableCheck } from "../table-check.ts";
import { blobsThere } from "./blob-row.ts";
import { artifactKey, keepKey, type ArtifactName } from "./root-row.ts";

interface BlobRow extends StoredBlob {
  readonly key: number;
}

const blob = tableCheck<BlobRow>({
  table: "holdfast_blob",
  select: sql`SELECT t.key, t.hash, t.kind, t.encoding, t.size, t.put_at, t.content`,
  from: sql`FROM holdfast_blob t`,
  ...byKey,
  weight: sql`CASE WHEN t.size > length(t.content) THEN t.size ELSE length(t.content) END`,
  keyOf: ({ hash }) => hash,
  judge(row, { bytes }) {
    verifiedBlob(bytes, row);
    return undefined;
  },
});

/** Checks a table in which each row refers to a blob. */
function referring<R extends { readonly blob: string }>(description: {
  readonly table: string;
  readonly select: Statement;
  readonly from: Statement;
  readonly order: Statement;
  readonly behind: (last: R) => Statement;
  readonly keyOf: (row: R) => string;
}): TableCheck {
  return tableCheck<R>({
    ...description,
    judge: (row) => (isBlobHash(row.blob) ? undefined : "It refers to an invalid hash."),
    *partners(found) {
      const there = yield* blobsThere(distinct(found, (row) => row.blob));
      return (row) => (there.has(row.blob) ? undefined : "The blob that it refers to is missing.");
    },
  });
}

const put = referring<{ readonly blob: string }>({
  table: "holdfast_blob_put",
  select: sql`SELECT t.hash AS blob, t.at`,
  from: sql`FROM holdfast_blob_put t`,
  order: sql`t.hash`,
  behind: (last) => sql`t.hash > ${last.blob}`,
  keyOf: (row) => row.blob,
});

const keep = referring<{ readonly blob: string; readonly owner: string }>({
  table: "holdfast_blob_keep",
  select: sql`SELECT t.hash AS blob, t.owner, t.kept_at`,
  from: sql`FROM holdfast_blob_keep t`,
  order: sql`t.hash, t.owner`,
  behind: (last) => sql`(t.hash, t.owner) > (${last.blob}, ${last.owner})`,
  keyOf: (row) => keepKey({ hash: row.blob, owner: row.owner }),
});

const artifact = referring<ArtifactName & { readonly blob: string }>({
  table: "holdfast_artifact",
  select: sql`SELECT t.namespace, t.name, t.blob, t.put_at`,
  from: sql`FROM holdfast_artifact t`,
  order: sql`t.namespace, t.name`,
  behind: (last) => sql`(t.namespace, t.name) > (${last.namespace}, ${last.name})`,
  keyOf: artifactKey,
});

export const blobChecks: readonly TableCheck[] = [blob, put, keep, artifact];
