import type { Database, WaitOptions } from "../../sql/database.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { reads, writes, type Method } from "../method.ts";
import {
  artifactList,
  findArtifact,
  givenArtifact,
  givenName,
  putArtifact,
  removeArtifact,
  shownArtifact,
  shownPutArtifact,
  type ListedArtifact,
} from "./artifact.ts";
import { blobContext, type BlobOptions, type BlobPutOptions } from "./context.ts";
import { shownBlob, type LoadedBlob } from "./read.ts";

/** Blobs under names, which keep them. Namespaces keep the names of different makers apart. */
export interface Artifacts {
  /**
   * Stores bytes and lets the name point to them, in one transaction, whatever
   * it pointed to before.
   * @throws HoldfastError `NAME_INVALID`, `VALUE_TOO_LARGE`, `OPTION_INVALID`
   * @example
   * await store.put("modules", "main", bytes, { kind: blobKinds.module });
   */
  readonly put: Method<
    [namespace: string, name: string, content: Uint8Array, options?: BlobPutOptions],
    { readonly hash: string; readonly size: number }
  >;
  /**
   * What a name points to, verified; undefined when there is no such name.
   * @throws HoldfastError `CORRUPT_ROW`, `NAME_INVALID`
   */
  readonly get: Method<
    [namespace: string, name: string, wait?: WaitOptions],
    LoadedBlob | undefined
  >;
  /**
   * The same for a name that must be there.
   * @throws HoldfastError `ARTIFACT_NOT_FOUND`, `CORRUPT_ROW`, `NAME_INVALID`
   */
  readonly load: Method<[namespace: string, name: string, wait?: WaitOptions], LoadedBlob>;
  /**
   * Removes a name; its bytes go with the next collection, unless something
   * else refers to them. False when there was no such name.
   * @throws HoldfastError `NAME_INVALID`
   */
  readonly remove: Method<[namespace: string, name: string, wait?: WaitOptions], boolean>;
  /**
   * The names of a namespace, in their order.
   * @throws HoldfastError `CURSOR_INVALID`, `NAME_INVALID`, `OPTION_INVALID`
   */
  readonly list: Method<[namespace: string, options?: PageOptions], Page<ListedArtifact>>;
}

/** @throws HoldfastError `OPTION_INVALID` */
export function artifacts(database: Database, options?: BlobOptions): Artifacts {
  const context = blobContext(database, options);
  return {
    put: writes(context, putArtifact, givenArtifact, shownPutArtifact),
    get: reads(context, findArtifact, givenName, shownBlob),
    load: reads(context, findArtifact, givenName, shownArtifact),
    remove: writes(context, removeArtifact, givenName),
    list: lists(context, artifactList),
  };
}
