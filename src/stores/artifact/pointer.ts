import type { NewBlob, StoredBlob } from "../../model/blob.ts";
import { corruptRow, isBlobHash } from "../../model/blob.ts";
import { textsOf } from "../../sql/dialect.ts";
import { row, rows, run, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { putBlob } from "../blob/put.ts";
import { readBlob } from "../blob/read.ts";
import type { BlobRoots } from "../blob/roots.ts";

/** A blob under a name. Namespaces keep names of different makers apart. */
export interface ArtifactName {
  readonly namespace: string;
  readonly name: string;
}

export function artifactKey({ namespace, name }: ArtifactName): string {
  return `${namespace}/${name}`;
}

export interface NewArtifact extends ArtifactName {
  readonly blob: NewBlob;
}

/** Stores a blob and lets the name point to it, whatever it pointed to before. */
export const putArtifact: Operation<NewArtifact, void> = plainOperation(
  "putArtifact",
  {
    key: artifactKey,
    *one({ namespace, name, blob }: NewArtifact) {
      yield* putBlob(blob);
      yield* run(sql`
        INSERT INTO holdfast_artifact (namespace, name, blob, put_at)
        VALUES (${namespace}, ${name}, ${blob.hash}, ${blob.at})
        ON CONFLICT (namespace, name) DO UPDATE SET blob = excluded.blob, put_at = excluded.put_at`);
    },
  },
);

/**
 * The blob that a name points to, yet to be verified; undefined without one.
 * @throws HoldfastError `CORRUPT_ROW` when it points to nothing.
 */
export const findArtifact: Operation<ArtifactName, StoredBlob | undefined> =
  plainOperation("findArtifact", {
    key: artifactKey,
    *one(wanted: ArtifactName) {
      const { namespace, name } = wanted;
      const pointer = yield* row<{ readonly blob: string }>(sql`
        SELECT blob FROM holdfast_artifact WHERE namespace = ${namespace} AND name = ${name}`);
      if (pointer === undefined) return undefined;
      const stored = yield* readBlob(pointer.blob);
      if (stored !== undefined) return stored;
      throw corruptRow(
        "holdfast_artifact",
        artifactKey(wanted),
        "the blob it points to is missing",
      );
    },
  });

/** Removes the name; its blob is collected once nothing else refers to it. */
export const removeArtifact: Operation<ArtifactName, boolean> = plainOperation(
  "removeArtifact",
  {
    key: artifactKey,
    *one({ namespace, name }: ArtifactName) {
      const removed = yield* run(sql`
        DELETE FROM holdfast_artifact WHERE namespace = ${namespace} AND name = ${name}`);
      return removed > 0;
    },
  },
);

export interface ListArtifacts {
  readonly namespace: string;
  /** Names after this one; "" for all. */
  readonly after: string;
  readonly limit: number;
}

export interface ListedArtifact {
  readonly name: string;
  readonly hash: string;
  readonly putAt: number;
}

export interface ArtifactPage {
  readonly items: readonly ListedArtifact[];
  /** Rows that were passed over because they cannot be as we wrote them. */
  readonly damaged: readonly { readonly table: string; readonly key: string }[];
  /** Give it as `after` for the next page; undefined at the end. */
  readonly next: string | undefined;
}

export const listArtifacts: Operation<ListArtifacts, ArtifactPage> =
  plainOperation("listArtifacts", {
    key: (input: ListArtifacts) => input.namespace,
    *one({ namespace, after, limit }) {
      const found = yield* rows<{ name: string; blob: string; put_at: number }>(
        sql`
        SELECT name, blob, put_at FROM holdfast_artifact
        WHERE namespace = ${namespace} AND name > ${after} ORDER BY name LIMIT ${limit}`,
      );
      const isSound = (item: { readonly blob: string }): boolean =>
        isBlobHash(item.blob);
      return {
        items: found.filter(isSound).map(({ name, blob, put_at }) => ({
          name,
          hash: blob,
          putAt: put_at,
        })),
        damaged: found
          .filter((item) => !isSound(item))
          .map(({ name }) => ({
            table: "holdfast_artifact",
            key: artifactKey({ namespace, name }),
          })),
        next: found.length < limit ? undefined : found.at(-1)?.name,
      };
    },
  });

/** Pointers keep their blobs. */
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
