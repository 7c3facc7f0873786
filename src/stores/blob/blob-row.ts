import type { NewBlob, StoredBlob } from "../../model/blob.ts";
import { HoldfastError } from "../../model/errors.ts";
import { lockRow, lockShared, skipLocked, textsOf } from "../../sql/dialect.ts";
import { row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/**
 * Operations on the rows of blobs inside other transactions: store, hold, read, and lock for
 * removal.
 */

/** The blob changes of a transaction. */
export interface BlobExchange {
  /** Blobs that its rows are about to refer to. */
  readonly puts: readonly NewBlob[];
  /** Hashes that its rows stop referring to. */
  readonly leaving: readonly string[];
}

/**
 * Stores blobs that rows of the same transaction are about to refer to. An existing blob with the
 * same content keeps its form. The blobs are locked until the transaction ends, so that garbage
 * collection skips them; others may refer to them at the same time.
 *
 * Blobs that the rows leave are locked for `removeLocked`, which runs after the rows are written.
 * All are touched in the order of their hashes, so that two transactions that exchange the same
 * blobs wait and do not deadlock.
 */
export function* exchangeBlobs({ puts, leaving }: BlobExchange): Tx<readonly LockedBlob[]> {
  const wanted = new Map(puts.map((blob) => [blob.hash, blob]));
  const hashes = new Set([...wanted.keys(), ...leaving]);
  const missing = new Set(wanted.size === 0 ? [] : yield* missingBlobs([...wanted.keys()]));
  const left: LockedBlob[] = [];
  for (const hash of [...hashes].toSorted()) {
    const blob = wanted.get(hash);
    if (blob === undefined) left.push(...(yield* lockedBlobs([hash], "wait")));
    else yield* putOne(blob, !missing.has(hash));
  }
  return left;
}

/**
 * Stores blobs as part of a transaction whose rows refer to them. Only rows of Holdfast count: a
 * component or frame of a session, an artifact, a keep. For a row of the app, add a keep in the
 * same transaction. Without it the next collection removes the blob.
 */
export function* putBlobs(blobs: readonly NewBlob[]): Tx<void> {
  yield* exchangeBlobs({ puts: blobs, leaving: [] });
}

/**
 * Stores one blob. Another transaction may store it first, and it may be collected before it is
 * locked.
 */
function* putOne(blob: NewBlob, isKnown: boolean): Tx<void> {
  for (let isThere = isKnown; ; isThere = !isThere) {
    if (isThere && (yield* shared([blob.hash])).has(blob.hash)) return;
    if (!isThere && (yield* insertBlob(blob)) > 0) return;
  }
}

function* insertBlob(blob: NewBlob): Tx<number> {
  const { hash, kind, encoding, size, at, content } = blob;
  return yield* run(sql`
    INSERT INTO holdfast_blob (hash, kind, encoding, size, put_at, content)
    VALUES (${hash}, ${kind}, ${encoding}, ${size}, ${at}, ${content})
    ON CONFLICT (hash) DO NOTHING`);
}

/** The existing blobs among some hashes, which then stay until the transaction ends. */
function* shared(hashes: readonly string[]): Tx<ReadonlySet<string>> {
  if (hashes.length === 0) return new Set();
  const held = yield* rows<{ readonly hash: string }>(sql`
    SELECT hash FROM holdfast_blob WHERE hash IN ${textsOf(hashes)} ORDER BY hash ${lockShared}`);
  return new Set(held.map(({ hash }) => hash));
}

/**
 * Locks blobs that a row of the same transaction is about to refer to. They exist, and are not
 * collected before the row is visible.
 *
 * @throws HoldfastError `BLOB_NOT_FOUND`
 */
export function* holdBlobs(hashes: readonly string[]): Tx<void> {
  const there = yield* shared(hashes);
  const hash = hashes.find((wanted) => !there.has(wanted));
  if (hash === undefined) return;
  throw new HoldfastError(
    "BLOB_NOT_FOUND",
    `Blob ${hash} does not exist. Put its bytes first, and refer to it within the grace period.`,
    { hash },
  );
}

/** A stored blob. Pass it to `verifiedBlob` before using it. */
export function* readBlob(hash: string): Tx<StoredBlob | undefined> {
  return yield* row<StoredBlob>(sql`
    SELECT hash, kind, encoding, size, content FROM holdfast_blob WHERE hash = ${hash}`);
}

/** Reads several blobs at once. Unknown hashes are left out of the answer. */
export function* readBlobs(hashes: readonly string[]): Tx<readonly StoredBlob[]> {
  return yield* rows<StoredBlob>(sql`
    SELECT hash, kind, encoding, size, content FROM holdfast_blob
    WHERE hash IN ${textsOf(hashes)} ORDER BY hash`);
}

/** The hashes among some that no blob has. */
export function* missingBlobs(hashes: readonly string[]): Tx<readonly string[]> {
  const found = yield* rows<{ readonly hash: string }>(sql`
    SELECT hash FROM holdfast_blob WHERE hash IN ${textsOf(hashes)}`);
  const there = new Set(found.map(({ hash }) => hash));
  return hashes.filter((hash) => !there.has(hash));
}

/** The hashes among some that a blob has. */
export function* blobsThere(hashes: readonly string[]): Tx<ReadonlySet<string>> {
  if (hashes.length === 0) return new Set();
  const missing = new Set(yield* missingBlobs(hashes));
  return new Set(hashes.filter((hash) => !missing.has(hash)));
}

/** The sizes of blobs in bytes. */
export function* sizesOfBlobs(
  hashes: readonly string[],
): Tx<readonly { readonly kind: string; readonly size: number; stored: number }[]> {
  return yield* rows<{ kind: string; size: number; stored: number }>(sql`
    SELECT kind, size, length(content) AS stored FROM holdfast_blob WHERE hash IN ${textsOf(hashes)}`);
}

/** A blob that no other transaction can refer to before this one ends. */
export interface LockedBlob {
  readonly key: number;
  readonly hash: string;
  /** The instant at which it was first stored. */
  readonly put_at: number;
  readonly stored: number;
}

/**
 * Locks the existing blobs among some hashes, in the order of their hashes. For blobs that the
 * caller itself leaves, it waits for locks of other transactions. So when two owners leave a blob
 * at once, the last one removes it. Garbage of others is skipped when it is locked.
 */
export function* lockedBlobs(
  hashes: readonly string[],
  whenLocked: "wait" | "passOver",
): Tx<readonly LockedBlob[]> {
  return yield* rows<LockedBlob>(sql`
    SELECT key, hash, put_at, length(content) AS stored FROM holdfast_blob
    WHERE hash IN ${textsOf(hashes)} ORDER BY hash ${whenLocked === "wait" ? lockRow : skipLocked}`);
}
