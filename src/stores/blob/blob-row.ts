import type { NewBlob, StoredBlob } from "../../model/blob.ts";
import { HoldfastError } from "../../model/errors.ts";
import { lockRow, lockShared, skipLocked, textsOf } from "../../sql/dialect.ts";
import { row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/**
 * What stores do with the rows of blobs inside their own transactions: store
 * them, hold them, read them, lock them to be removed.
 */

/** What a transaction does with blobs. */
export interface BlobExchange {
  /** Those that its rows are going to refer to. */
  readonly puts: readonly NewBlob[];
  /** Hashes that its rows refer to and will not any longer. */
  readonly leaving: readonly string[];
}

/**
 * Stores blobs that rows of the same transaction are going to refer to, or
 * keeps those of the same content in the form they have. They are locked until
 * the transaction ends, so that whoever collects garbage meanwhile passes them
 * over; others may refer to them at the same time.
 *
 * Those that it leaves are locked for `removeLocked`, which comes when its rows
 * are written. All are touched in the order of their hashes, so that two who
 * exchange the same ones wait and do not deadlock.
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
 * Stores blobs as part of a transaction whose rows refer to them. Only rows of
 * Holdfast count: a component or frame of a session, an artifact, a keep. For a
 * row of the app a keep goes into the same transaction; without it the next
 * collection removes the blob.
 */
export function* putBlobs(blobs: readonly NewBlob[]): Tx<void> {
  yield* exchangeBlobs({ puts: blobs, leaving: [] });
}

/** Somebody else may store it first, and it may be collected before it is locked. */
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

/** Those of some hashes that are there, and stay until the transaction ends. */
function* shared(hashes: readonly string[]): Tx<ReadonlySet<string>> {
  if (hashes.length === 0) return new Set();
  const held = yield* rows<{ readonly hash: string }>(sql`
    SELECT hash FROM holdfast_blob WHERE hash IN ${textsOf(hashes)} ORDER BY hash ${lockShared}`);
  return new Set(held.map(({ hash }) => hash));
}

/**
 * Locks blobs that a row of the same transaction is going to refer to: they
 * are there, and nobody collects them before the row is visible.
 *
 * @throws HoldfastError `BLOB_NOT_FOUND`
 */
export function* holdBlobs(hashes: readonly string[]): Tx<void> {
  const there = yield* shared(hashes);
  const hash = hashes.find((wanted) => !there.has(wanted));
  if (hash === undefined) return;
  throw new HoldfastError(
    "BLOB_NOT_FOUND",
    `There is no blob ${hash}. Put its bytes first, and refer to it within the grace period.`,
    { hash },
  );
}

/** A blob as it is stored. Give it to `verifiedBlob` before believing it. */
export function* readBlob(hash: string): Tx<StoredBlob | undefined> {
  return yield* row<StoredBlob>(sql`
    SELECT hash, kind, encoding, size, content FROM holdfast_blob WHERE hash = ${hash}`);
}

/** Several at once, for reads that need many; absent ones are missing from the answer. */
export function* readBlobs(hashes: readonly string[]): Tx<readonly StoredBlob[]> {
  return yield* rows<StoredBlob>(sql`
    SELECT hash, kind, encoding, size, content FROM holdfast_blob
    WHERE hash IN ${textsOf(hashes)} ORDER BY hash`);
}

/** Those of some hashes that no blob has. */
export function* missingBlobs(hashes: readonly string[]): Tx<readonly string[]> {
  const found = yield* rows<{ readonly hash: string }>(sql`
    SELECT hash FROM holdfast_blob WHERE hash IN ${textsOf(hashes)}`);
  const there = new Set(found.map(({ hash }) => hash));
  return hashes.filter((hash) => !there.has(hash));
}

/** Those of some hashes that a blob has. */
export function* blobsThere(hashes: readonly string[]): Tx<ReadonlySet<string>> {
  if (hashes.length === 0) return new Set();
  const missing = new Set(yield* missingBlobs(hashes));
  return new Set(hashes.filter((hash) => !missing.has(hash)));
}

/** How many bytes a blob has. */
export function* sizesOfBlobs(
  hashes: readonly string[],
): Tx<readonly { readonly kind: string; readonly size: number; stored: number }[]> {
  return yield* rows<{ kind: string; size: number; stored: number }>(sql`
    SELECT kind, size, length(content) AS stored FROM holdfast_blob WHERE hash IN ${textsOf(hashes)}`);
}

/** A blob that nobody else can refer to before the transaction ends. */
export interface LockedBlob {
  readonly key: number;
  readonly hash: string;
  /** When it was first stored. */
  readonly put_at: number;
  readonly stored: number;
}

/**
 * Locks those of some blobs that are there, in the order of their hashes. One
 * that another transaction has locked is waited for when it was one's own, so
 * that of two owners who leave at once the last takes it along; the garbage of
 * others can wait, and is passed over.
 */
export function* lockedBlobs(
  hashes: readonly string[],
  whenLocked: "wait" | "passOver",
): Tx<readonly LockedBlob[]> {
  return yield* rows<LockedBlob>(sql`
    SELECT key, hash, put_at, length(content) AS stored FROM holdfast_blob
    WHERE hash IN ${textsOf(hashes)} ORDER BY hash ${whenLocked === "wait" ? lockRow : skipLocked}`);
}
