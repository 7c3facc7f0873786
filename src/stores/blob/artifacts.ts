import type { Database, WaitOptions } from "../../sql/database.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { readsLocking, writes, type Method } from "../method.ts";
import {
  artifactList,
  findArtifact,
  givenArtifact,
  givenName,
  lockReadArtifact,
  putArtifact,
  removeArtifact,
  shownArtifact,
  shownFoundArtifact,
  shownPutArtifact,
  type ListedArtifact,
} from "./artifact.ts";
import { blobContext, type BlobOptions, type BlobPutOptions } from "./context.ts";
import type { LoadedBlob } from "./read.ts";
import { VerifiedBlobs } from "./verified.ts";

/** Named blobs. A name keeps its blob. Namespaces separate the names of different makers. */
export interface Artifacts {
  /**
   * Stores bytes, and makes the name point to them, in one transaction. Replaces any earlier blob
   * of the name.
   * @throws HoldfastError `NAME_INVALID`, `VALUE_TOO_LARGE`, `OPTION_INVALID`
   * @example
   * await store.put("modules", "main", bytes, { kind: blobKinds.module });
   */
  readonly put: Method<
    [namespace: string, name: string, content: Uint8Array, options?: BlobPutOptions],
    { readonly hash: string; readonly size: number }
  >;
  /**
   * Returns the verified blob of a name; undefined for an unknown name. The bytes of each hash are
   * verified once, and up to 16 MiB of them are cached.
   * @throws HoldfastError `CORRUPT_ROW`, `NAME_INVALID`
   */
  readonly get: Method<
    [namespace: string, name: string, wait?: WaitOptions],
    LoadedBlob | undefined
  >;
  /**
   * Returns the blob of a name that must exist.
   * @throws HoldfastError `ARTIFACT_NOT_FOUND`, `CORRUPT_ROW`, `NAME_INVALID`
   */
  readonly load: Method<[namespace: string, name: string, wait?: WaitOptions], LoadedBlob>;
  /**
   * Removes a name; false for an unknown name. The next collection removes its bytes, unless
   * something else refers to them.
   * @throws HoldfastError `NAME_INVALID`
   */
  readonly remove: Method<[namespace: string, name: string, wait?: WaitOptions], boolean>;
  /**
   * The names of a namespace, in order.
   * @throws HoldfastError `CURSOR_INVALID`, `NAME_INVALID`, `OPTION_INVALID`
   */
  readonly list: Method<[namespace: string, options?: PageOptions], Page<ListedArtifact>>;
}

const reads = readsLocking(lockReadArtifact);

/** @throws HoldfastError `OPTION_INVALID` */
export function artifacts(database: Database, options?: BlobOptions): Artifacts {
  const context = { ...blobContext(database, options), verified: new VerifiedBlobs() };
  return {
    put: writes(context, putArtifact, givenArtifact, shownPutArtifact),
    get: reads(context, findArtifact, givenName, shownFoundArtifact),
    load: reads(context, findArtifact, givenName, shownArtifact),
    remove: writes(context, removeArtifact, givenName),
    list: lists(context, artifactList),
  };
}
