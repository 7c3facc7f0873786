import { isBlobHash, type NewBlob, type StoredBlob } from "../../model/blob.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { HoldfastError } from "../../model/errors.ts";
import { checkedText } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { lockRow, takeName } from "../../sql/dialect.ts";
import { row, rows, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import {
  list,
  pageOf,
  sliced,
  type List,
  type PageOptions,
  type Slice,
  type SliceBounds,
} from "../list.ts";
import { onlyWait, optionsAndWait, type Call } from "../method.ts";
import { putBlobs, readBlob } from "./blob-row.ts";
import { newBlob, type BlobContext, type BlobPutOptions } from "./context.ts";
import type { PutBlob } from "./put.ts";
import { shownBlob, type LoadedBlob } from "./read.ts";
import { artifactKey, type ArtifactName } from "./root-row.ts";
import type { VerifiedBlobs } from "./verified.ts";

interface PutArtifact extends ArtifactName {
  readonly blob: NewBlob;
}

/** @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `VALUE_TOO_LARGE` */
export function givenArtifact(
  context: BlobContext,
  namespace: string,
  name: string,
  content: Uint8Array,
  given?: BlobPutOptions,
): Call<PutArtifact> {
  const { options, wait } = optionsAndWait(given, ["kind"]);
  const named = checkedName(namespace, name);
  const blob = newBlob(context, content, options.kind);
  return { input: { ...named, blob }, wait };
}

/** Stores a blob, and makes the name point to it, replacing any earlier blob. */
export const putArtifact = storeOperation("putArtifact", {
  snapshotSafe: true,
  key: artifactKey,
  *one(_: BlobContext, { namespace, name, blob }: PutArtifact): Tx<void> {
    yield* putBlobs([blob]);
    yield* run(sql`
      INSERT INTO holdfast_artifact (namespace, name, blob, put_at)
      VALUES (${namespace}, ${name}, ${blob.hash}, ${blob.at})
      ON CONFLICT (namespace, name) DO UPDATE SET blob = excluded.blob, put_at = excluded.put_at`);
  },
});

export function shownPutArtifact(_: BlobContext, __: void, { blob }: PutArtifact): PutBlob {
  return { hash: blob.hash, size: blob.size };
}

/** @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID` */
export function givenName(
  _: BlobContext,
  namespace: string,
  name: string,
  wait?: WaitOptions,
): Call<ArtifactName> {
  return { input: checkedName(namespace, name), wait: onlyWait(wait) };
}

export interface ArtifactContext extends BlobContext {
  readonly verified: VerifiedBlobs;
}

/** The blob of an artifact: verified before, or still to verify. */
type FoundArtifact =
  | { readonly kind: "verified"; readonly blob: LoadedBlob }
  | { readonly kind: "stored"; readonly blob: StoredBlob };

const takeArtifactName = takeName({
  table: "holdfast_artifact",
  unique: "namespace, name",
  others: "blob, put_at",
  placeholder: "'', 0",
});

/** Locks the name that a read is about, also a free one: a put would overwrite another's. */
export function* lockReadArtifact({ namespace, name }: ArtifactName): Tx<void> {
  const found = yield* row(sql`
    SELECT name FROM holdfast_artifact
    WHERE namespace = ${namespace} AND name = ${name} ${lockRow}`);
  if (found !== undefined) return;
  yield* row(takeArtifactName(sql`${namespace}, ${name}`));
  yield* run(sql`
    DELETE FROM holdfast_artifact WHERE namespace = ${namespace} AND name = ${name} AND blob = ''`);
}

/**
 * The blob that a name points to; undefined for an unknown name.
 * @throws HoldfastError `CORRUPT_ROW` for a missing blob.
 */
export const findArtifact = storeOperation("findArtifact", {
  key: artifactKey,
  *one({ verified }: ArtifactContext, input: ArtifactName): Tx<FoundArtifact | undefined> {
    const { namespace, name } = input;
    const pointer = yield* row<{ readonly blob: string }>(sql`
      SELECT blob FROM holdfast_artifact WHERE namespace = ${namespace} AND name = ${name}`);
    if (pointer === undefined) return undefined;
    const known = verified.get(pointer.blob);
    if (known !== undefined) return { kind: "verified", blob: known };
    const stored = yield* readBlob(pointer.blob);
    if (stored !== undefined) return { kind: "stored", blob: stored };
    throw corruptArtifact(input, "points to a blob that is missing");
  },
});

/** @throws HoldfastError `CORRUPT_ROW` */
export function shownFoundArtifact(
  context: ArtifactContext,
  found: FoundArtifact | undefined,
): LoadedBlob | undefined {
  if (found?.kind === "verified") return found.blob;
  const loaded = shownBlob(context, found?.blob);
  if (loaded !== undefined) context.verified.add(loaded);
  return loaded;
}

/** @throws HoldfastError `ARTIFACT_NOT_FOUND`, `CORRUPT_ROW` */
export function shownArtifact(
  context: ArtifactContext,
  answer: FoundArtifact | undefined,
  { namespace, name }: ArtifactName,
): LoadedBlob {
  const found = shownFoundArtifact(context, answer);
  if (found !== undefined) return found;
  const key = artifactKey({ namespace, name });
  throw new HoldfastError("ARTIFACT_NOT_FOUND", `Artifact "${key}" does not exist. Put it first.`, {
    namespace,
    name,
  });
}

/** Removes the name. Its blob is collected once nothing else refers to it. */
export const removeArtifact = storeOperation("removeArtifact", {
  snapshotSafe: true,
  key: artifactKey,
  *one(_: BlobContext, { namespace, name }: ArtifactName): Tx<boolean> {
    const removed = yield* run(sql`
      DELETE FROM holdfast_artifact WHERE namespace = ${namespace} AND name = ${name}`);
    return removed > 0;
  },
});

/** A name, and its blob. */
export interface ListedArtifact {
  readonly name: string;
  readonly hash: string;
  readonly putAt: number;
}

interface ArtifactRow extends ArtifactName, ListedArtifact {}

/** The names of a namespace, in order. */
export const artifactList: List<
  BlobContext,
  [namespace: string, options?: PageOptions],
  ListedArtifact
> = list("listArtifacts", {
  table: "holdfast_artifact",
  given(_: BlobContext, namespace: string, options?: PageOptions) {
    const { page } = pageOf(options, []);
    return {
      filter: { namespace: checkedText("A namespace", namespace) },
      page,
    };
  },
  slice: artifactSlice,
  keyOf: artifactKey,
  itemOf(_, found: ArtifactRow) {
    const { name, hash, putAt } = found;
    if (isBlobHash(hash)) return { name, hash, putAt };
    throw corruptArtifact(found, "points to an invalid hash");
  },
});

function* artifactSlice(
  _: BlobContext,
  { namespace }: { readonly namespace: string },
  bounds: SliceBounds,
): Tx<Slice<ArtifactRow>> {
  return yield* sliced(
    bounds,
    ({ name }: ArtifactRow) => [name],
    function* (after, count) {
      return yield* rows<ArtifactRow>(sql`
        SELECT namespace, name, blob AS hash, put_at AS "putAt" FROM holdfast_artifact
        WHERE namespace = ${namespace} AND name > ${after?.[0] ?? ""} ORDER BY name LIMIT ${count}`);
    },
  );
}

function corruptArtifact(name: ArtifactName, why: string): HoldfastError {
  return corruptRow("holdfast_artifact", artifactKey(name), why);
}

function checkedName(namespace: string, name: string): ArtifactName {
  return {
    namespace: checkedText("A namespace", namespace),
    name: checkedText("The name of an artifact", name, 512),
  };
}
