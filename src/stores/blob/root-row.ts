import { integersOf, seesLatest, textsOf } from "../../sql/dialect.ts";
import { plainOperation, row, rows, run, type Operation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { LockedBlob } from "./blob-row.ts";

/** A row that keeps a blob. */
export interface BlobRoot {
  readonly table: string;
  readonly key: string;
}

/**
 * A column that refers to blobs. Each folder with such a column describes it this way, so no other
 * folder needs to read its table.
 */
export interface BlobRoots {
  /** The hashes among some that the column refers to. */
  readonly usedOf: (hashes: readonly string[]) => Tx<readonly string[]>;
  /** The distinct hashes of the column, in order, after `after` or from the beginning. */
  readonly page: (after: string | null, limit: number) => Tx<readonly string[]>;
  /** A row that refers to this hash. */
  readonly rootOf: (hash: string) => Tx<BlobRoot>;
}

/** A kept blob and its owner in the app. */
export interface BlobKeepRef {
  readonly hash: string;
  readonly owner: string;
}

export function keepKey({ hash, owner }: BlobKeepRef): string {
  return `${hash}/${owner}`;
}

/** The keeps of the app. */
export const keepRoots: BlobRoots = {
  *usedOf(hashes) {
    const found = yield* rows<{ readonly hash: string }>(sql`
      SELECT DISTINCT hash FROM holdfast_blob_keep WHERE hash IN ${textsOf(hashes)}`);
    return found.map(({ hash }) => hash);
  },
  *page(after, limit) {
    const found = yield* rows<{ readonly hash: string }>(
      after === null
        ? sql`SELECT DISTINCT hash FROM holdfast_blob_keep ORDER BY hash LIMIT ${limit}`
        : sql`SELECT DISTINCT hash FROM holdfast_blob_keep WHERE hash > ${after} ORDER BY hash LIMIT ${limit}`,
    );
    return found.map(({ hash }) => hash);
  },
  *rootOf(hash) {
    const found = yield* row<BlobKeepRef>(sql`
      SELECT hash, owner FROM holdfast_blob_keep WHERE hash = ${hash} ORDER BY owner LIMIT 1`);
    return {
      table: "holdfast_blob_keep",
      key: found === undefined ? hash : keepKey(found),
    };
  },
};

/** The name of a blob. Namespaces separate the names of different makers. */
export interface ArtifactName {
  readonly namespace: string;
  readonly name: string;
}

export function artifactKey({ namespace, name }: ArtifactName): string {
  return `${namespace}/${name}`;
}

/** Artifacts keep their blobs. */
export const artifactRoots: BlobRoots = {
  *usedOf(hashes) {
    const found = yield* rows<{ readonly blob: string }>(sql`
      SELECT DISTINCT blob FROM holdfast_artifact WHERE blob IN ${textsOf(hashes)}`);
    return found.map(({ blob }) => blob);
  },
  *page(after, limit) {
    const found = yield* rows<{ readonly blob: string }>(
      after === null
        ? sql`SELECT DISTINCT blob FROM holdfast_artifact ORDER BY blob LIMIT ${limit}`
        : sql`SELECT DISTINCT blob FROM holdfast_artifact WHERE blob > ${after} ORDER BY blob LIMIT ${limit}`,
    );
    return found.map(({ blob }) => blob);
  },
  *rootOf(hash) {
    const found = yield* row<ArtifactName>(sql`
      SELECT namespace, name FROM holdfast_artifact WHERE blob = ${hash} ORDER BY namespace, name LIMIT 1`);
    return {
      table: "holdfast_artifact",
      key: found === undefined ? hash : artifactKey(found),
    };
  },
};

export interface BlobRemoval {
  readonly hashes: readonly string[];
  /** Standalone blobs stored later stay, since their caller may be about to refer to them. */
  readonly putUntil: number;
}

export interface RemovedBlobs {
  readonly blobs: number;
  readonly bytes: number;
}

/**
 * Removes the unreferenced blobs among some locked ones. The roots are read in statements after the
 * one that locked. A transaction that refers to a blob has locked it first. Either its row is
 * visible here, or it finds the blob gone and stores it again. Inside a serializable transaction
 * such a row may be newer than the snapshot, so all blobs stay for the next collection.
 */
export function* removeLocked(
  locked: readonly LockedBlob[],
  putUntil: number,
  roots: readonly BlobRoots[],
): Tx<RemovedBlobs> {
  if (locked.length === 0) return { blobs: 0, bytes: 0 };
  const used = yield* usedBlobs(
    locked.map(({ hash }) => hash),
    roots,
  );
  const unused = locked.filter(({ hash }) => !used.has(hash));
  const puts = yield* putsOf(unused.map(({ hash }) => hash));
  const recent = recentOf(puts, putUntil);
  const removable = unused.filter(({ hash }) => !recent.has(hash));
  if (removable.length === 0) return { blobs: 0, bytes: 0 };
  const blobs = yield* run(sql`
    DELETE FROM holdfast_blob
    WHERE key IN ${integersOf(removable.map(({ key }) => key))} AND ${seesLatest}`);
  if (blobs === 0) return { blobs: 0, bytes: 0 };
  if (puts.length > 0)
    yield* run(sql`
      DELETE FROM holdfast_blob_put WHERE hash IN ${textsOf(removable.map(({ hash }) => hash))}`);
  return {
    blobs,
    bytes: removable.reduce((sum, { stored }) => sum + stored, 0),
  };
}

/** The hashes among some that any root refers to. */
export function* usedBlobs(
  hashes: readonly string[],
  roots: readonly BlobRoots[],
): Tx<ReadonlySet<string>> {
  const used = new Set<string>();
  for (const root of roots) {
    const wanted = hashes.filter((hash) => !used.has(hash));
    if (wanted.length === 0) break;
    for (const hash of yield* root.usedOf(wanted)) used.add(hash);
  }
  return used;
}

/** The hashes among some that were stored on their own after an instant. */
export function* recentlyPut(hashes: readonly string[], putUntil: number): Tx<ReadonlySet<string>> {
  return recentOf(yield* putsOf(hashes), putUntil);
}

interface BlobPut {
  readonly hash: string;
  readonly at: number;
}

function* putsOf(hashes: readonly string[]): Tx<readonly BlobPut[]> {
  if (hashes.length === 0) return [];
  return yield* rows<BlobPut>(sql`
    SELECT hash, at FROM holdfast_blob_put WHERE hash IN ${textsOf(hashes)}`);
}

function recentOf(puts: readonly BlobPut[], putUntil: number): ReadonlySet<string> {
  const recent = puts.filter(({ at }) => at > putUntil);
  return new Set(recent.map(({ hash }) => hash));
}

/** A blob on a walk through all blobs in insertion order. */
export interface ScannedBlob {
  readonly key: number;
  readonly hash: string;
  readonly put_at: number;
}

/** The next blobs of a walk. Their content is not read. */
export function* blobsAfter(after: number, limit: number): Tx<readonly ScannedBlob[]> {
  return yield* rows<ScannedBlob>(sql`
    SELECT key, hash, put_at FROM holdfast_blob WHERE key > ${after} ORDER BY key LIMIT ${limit}`);
}

/** The end of a walk that ignores blobs inserted during the walk. */
export const newestBlob: Operation<object, number> = plainOperation("newestBlob", {
  key: () => "",
  *one() {
    const found = yield* row<{ readonly key: number }>(sql`
      SELECT key FROM holdfast_blob ORDER BY key DESC LIMIT 1`);
    return found?.key ?? 0;
  },
});

/** The storage of the blobs of one kind. */
export interface BlobSizes {
  readonly kind: string;
  readonly blobs: number;
  /** The size before compression. */
  readonly size: number;
  /** The size as stored. */
  readonly stored: number;
}

export interface SizesPage {
  readonly sizes: readonly BlobSizes[];
  /** The last blob of the page; undefined for an empty page. */
  readonly last: number | undefined;
}

interface SizesAfter {
  readonly after: number;
  readonly limit: number;
}

/** The sizes of the next blobs of a walk, by kind. */
export const blobSizesAfter = plainOperation("blobSizesAfter", {
  key: () => "",
  *one({ after, limit }: SizesAfter): Tx<SizesPage> {
    const found = yield* rows<BlobSizes & { readonly last: number }>(sql`
      SELECT kind, count(*) AS blobs, sum(size) AS size, sum(stored) AS stored, max(key) AS last
      FROM (SELECT key, kind, size, length(content) AS stored FROM holdfast_blob
        WHERE key > ${after} ORDER BY key LIMIT ${limit}) AS page
      GROUP BY kind ORDER BY kind`);
    const last = Math.max(0, ...found.map((page) => page.last));
    return {
      sizes: found.map(({ kind, blobs, size, stored }) => ({
        kind,
        blobs,
        size,
        stored,
      })),
      last: found.length === 0 ? undefined : last,
    };
  },
});
