import { givenSignal, optionsOf } from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import {
  attachmentSizesAfter,
  type AttachmentSizes,
  type CopiesPage,
} from "../attachment/attachment-row.ts";
import { blobSizesAfter, type BlobSizes, type SizesPage } from "../blob/root-row.ts";

export interface SizeReport {
  /** The sizes by kind, in the order of the kinds' names. */
  readonly kinds: readonly BlobSizes[];
  readonly attachments: AttachmentSizes;
  readonly total: { readonly size: number; readonly stored: number };
}

const rowsPerPage = 1_000;

/**
 * Measures blobs and attachments of all sessions in pages. Under load the pages show different
 * moments.
 */
export async function measureSizes(
  database: Database,
  options: { readonly signal?: AbortSignal } | undefined,
): Promise<SizeReport> {
  const { signal } = optionsOf(options, ["signal"]);
  givenSignal(signal);
  const sum = new Sum();
  let blob: number | undefined = 0;
  while (blob !== undefined) {
    const found: SizesPage = await database.read(
      blobSizesAfter,
      { after: blob, limit: rowsPerPage },
      { signal },
    );
    for (const sizes of found.sizes) sum.addBlobs(sizes);
    blob = found.last;
    await database.pause();
  }
  let copy: string | undefined = "";
  while (copy !== undefined) {
    const found: CopiesPage = await database.read(
      attachmentSizesAfter,
      { after: copy, limit: rowsPerPage },
      { signal },
    );
    sum.addAttachments(found.sizes);
    copy = found.next;
    await database.pause();
  }
  return sum.report;
}

class Sum {
  readonly #kinds = new Map<string, BlobSizes>();
  #attachments: AttachmentSizes = { attachments: 0, size: 0 };

  addBlobs({ kind, blobs, size, stored }: BlobSizes): void {
    const before = this.#kinds.get(kind);
    this.#kinds.set(kind, {
      kind,
      blobs: blobs + (before?.blobs ?? 0),
      size: size + (before?.size ?? 0),
      stored: stored + (before?.stored ?? 0),
    });
  }

  addAttachments({ attachments, size }: AttachmentSizes): void {
    this.#attachments = {
      attachments: this.#attachments.attachments + attachments,
      size: this.#attachments.size + size,
    };
  }

  get report(): SizeReport {
    const kinds = [...this.#kinds.values()].toSorted((a, b) => (a.kind < b.kind ? -1 : 1));
    const attachments = this.#attachments;
    const total = { size: attachments.size, stored: attachments.size };
    for (const { size, stored } of kinds) {
      total.size += size;
      total.stored += stored;
    }
    return { kinds, attachments, total };
  }
}
