import type { Tx } from "../../sql/operation.ts";

/** A row that keeps a blob. */
export interface BlobRoot {
  readonly table: string;
  readonly key: string;
}

/**
 * A column that refers to blobs. Every folder that has one describes it so,
 * and nobody else needs to read its table.
 */
export interface BlobRoots {
  /** Those of some hashes that the column refers to. */
  readonly usedOf: (hashes: readonly string[]) => Tx<readonly string[]>;
  /** What the column refers to, each once and in order, after `after` or from the beginning. */
  readonly page: (after: string | null, limit: number) => Tx<readonly string[]>;
  /** A row that refers to this hash. */
  readonly rootOf: (hash: string) => Tx<BlobRoot>;
}
