import type { LoadedBlob } from "./read.ts";

/** The largest total size in bytes. */
const bytesMax = 16_777_216;
/** A blob takes some hundred bytes of memory besides its content, which small ones would add up. */
const blobsMax = 1_000;

/**
 * Verified blobs by hash. A hash names the same bytes forever, so they need not be read, inflated
 * and hashed again. The least recently used blobs are evicted first.
 */
export class VerifiedBlobs {
  /** In the order of use. */
  readonly #blobs = new Map<string, LoadedBlob>();
  #bytes = 0;

  get(hash: string): LoadedBlob | undefined {
    const found = this.#blobs.get(hash);
    if (found === undefined) return undefined;
    this.#blobs.delete(hash);
    this.#blobs.set(hash, found);
    return copyOf(found);
  }

  add(blob: LoadedBlob): void {
    if (blob.size > bytesMax || this.#blobs.has(blob.hash)) return;
    this.#blobs.set(blob.hash, copyOf(blob));
    this.#bytes += blob.size;
    for (const [hash, { size }] of this.#blobs) {
      if (this.#bytes <= bytesMax && this.#blobs.size <= blobsMax) return;
      this.#blobs.delete(hash);
      this.#bytes -= size;
    }
  }
}

/** Copies a blob, since a caller may change its bytes. */
function copyOf(blob: LoadedBlob): LoadedBlob {
  return { ...blob, content: blob.content.slice() };
}
