import { verifiedBlob } from "../../model/blob.ts";
import { HoldfastError } from "../../model/errors.ts";
import { checkedCount, checkedText, optionsOf } from "../../model/shape.ts";
import { blobSurroundings } from "../blob/context.ts";
import type { BlobEnvironment, BlobPutOptions } from "../blob/context.ts";
import type { LoadedBlob } from "../blob/blobs.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import { givenDatabase } from "../given.ts";
import {
  artifactKey,
  findArtifact,
  listArtifacts,
  putArtifact,
  removeArtifact,
} from "./pointer.ts";
import type { ArtifactName, ArtifactPage } from "./pointer.ts";

export interface ListArtifactsOptions extends WaitOptions {
  /** The `next` of the page before. */
  readonly after?: string;
  /** 100 unless told, 1,000 at most. */
  readonly limit?: number;
}

/** Blobs under names, which keep them. */
export interface Artifacts {
  /** Stores bytes and lets the name point to them, in one transaction. */
  put(
    namespace: string,
    name: string,
    content: Uint8Array,
    options?: BlobPutOptions & WaitOptions,
  ): Promise<{ readonly hash: string; readonly size: number }>;
  /**
   * What a name points to, verified; undefined when there is no such name.
   * @throws HoldfastError `CORRUPT_ROW`
   */
  get(
    namespace: string,
    name: string,
    options?: WaitOptions,
  ): Promise<LoadedBlob | undefined>;
  /**
   * The same for a name that must be there.
   * @throws HoldfastError `ARTIFACT_NOT_FOUND`, `CORRUPT_ROW`
   */
  load(
    namespace: string,
    name: string,
    options?: WaitOptions,
  ): Promise<LoadedBlob>;
  /** False when there was no such name. */
  remove(
    namespace: string,
    name: string,
    options?: WaitOptions,
  ): Promise<boolean>;
  /** The names of a namespace in their order, page by page. */
  list(
    namespace: string,
    options?: ListArtifactsOptions,
  ): Promise<ArtifactPage>;
}

export function artifacts(
  database: Database,
  environment?: BlobEnvironment,
): Artifacts {
  const { prepare } = blobSurroundings(
    givenDatabase(database),
    optionsOf(environment),
  );
  const get: Artifacts["get"] = async (namespace, name, options) => {
    const stored = await database.read(
      findArtifact,
      checkedName(namespace, name),
      options,
    );
    if (stored === undefined) return undefined;
    const { hash, kind, size } = stored;
    return { hash, kind, size, content: verifiedBlob(database.bytes, stored) };
  };
  return {
    get,
    async put(namespace, name, content, options) {
      const { kind, ...wait } = optionsOf(options);
      const blob = prepare(content, kind === undefined ? {} : { kind });
      const artifact = { ...checkedName(namespace, name), blob };
      await database.write(putArtifact, artifact, wait);
      return { hash: blob.hash, size: blob.size };
    },
    async load(namespace, name, options) {
      const found = await get(namespace, name, options);
      if (found !== undefined) return found;
      const key = artifactKey({ namespace, name });
      throw new HoldfastError(
        "ARTIFACT_NOT_FOUND",
        `There is no artifact "${key}". Put it first.`,
        { namespace, name },
      );
    },
    remove: async (namespace, name, options) =>
      database.write(removeArtifact, checkedName(namespace, name), options),
    async list(namespace, options) {
      const { after = "", limit = 100, ...wait } = optionsOf(options);
      return database.read(
        listArtifacts,
        {
          namespace: checkedText("A namespace", namespace),
          after: after === "" ? "" : checkedText("A name", after, 512),
          limit: checkedCount("limit", limit, { min: 1, max: 1_000 }),
        },
        wait,
      );
    },
  };
}

function checkedName(namespace: string, name: string): ArtifactName {
  return {
    namespace: checkedText("A namespace", namespace),
    name: checkedText("The name of an artifact", name, 512),
  };
}
