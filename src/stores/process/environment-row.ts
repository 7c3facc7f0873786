import { blobKinds } from "../../model/blob.ts";
import { processInvalid } from "../../model/process/errors.ts";
import { excerpt } from "../../model/values/excerpt.ts";
import { textsOf } from "../../sql/dialect.ts";
import { row, rows, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { holdBlobs } from "../blob/blob-row.ts";
import type { BlobRoots } from "../blob/root-row.ts";

/** Environments of processes: blobs of one kind, which many processes may share. */

/**
 * Locks the environment of a process that the transaction is about to register.
 *
 * @throws HoldfastError `BLOB_NOT_FOUND`, `PROCESS_INVALID` for a blob of another kind
 */
export function* holdEnvironment(hash: string): Tx<void> {
  yield* holdBlobs([hash]);
  const found = yield* row<{ readonly kind: string }>(sql`
    SELECT kind FROM holdfast_blob WHERE hash = ${hash}`);
  const wanted = blobKinds.processEnvironment.name;
  if (found === undefined || found.kind === wanted) return;
  throw processInvalid(
    "$.environment",
    `names a blob of kind ${excerpt(found.kind)}, which is not an environment: put its bytes as blobKinds.processEnvironment. ` +
      "Equal bytes keep the kind under which they were stored first.",
  );
}

interface Found {
  readonly environment: string;
}

/** A process keeps its environment until it is pruned. */
export const processRoots: BlobRoots = {
  *usedOf(hashes) {
    const found = yield* rows<Found>(sql`
      SELECT DISTINCT environment FROM holdfast_process WHERE environment IN ${textsOf(hashes)}`);
    return found.map(({ environment }) => environment);
  },
  *page(after, limit) {
    const found = yield* rows<Found>(
      after === null
        ? sql`SELECT DISTINCT environment FROM holdfast_process WHERE environment IS NOT NULL ORDER BY environment LIMIT ${limit}`
        : sql`SELECT DISTINCT environment FROM holdfast_process WHERE environment > ${after} ORDER BY environment LIMIT ${limit}`,
    );
    return found.map(({ environment }) => environment);
  },
  *rootOf(hash) {
    const found = yield* row<{ readonly id: string }>(sql`
      SELECT id FROM holdfast_process WHERE environment = ${hash} ORDER BY key LIMIT 1`);
    return { table: "holdfast_process", key: found?.id ?? hash };
  },
};
