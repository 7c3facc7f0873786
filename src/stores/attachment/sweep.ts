import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import { checkedCount, givenFunction } from "../../model/shape.ts";
import type { AttachmentSurroundings } from "./context.ts";
import {
  condemnedCopies,
  forgetCopies,
  giveUpPuts,
  sweepIntents,
} from "./forget.ts";

export interface SweepAttachmentsOptions {
  /** How long a commit may take after its attachments were put: 1 day unless told. */
  readonly olderThan?: Duration;
  readonly signal?: AbortSignal | undefined;
  /** Rows per transaction: 100 unless told. */
  readonly rowsPerSlice?: number;
  /** Told after every slice. */
  readonly onProgress?: ((soFar: SweepReport) => void) | undefined;
}

export interface SweepReport {
  /** Intents that no commit had made good. */
  readonly forgotten: number;
  /** Copies of bytes that are gone now. */
  readonly removed: number;
  /** Copies that the byte store could not remove, with the code of its error: the next sweep tries again. */
  readonly failed: readonly {
    readonly name: string;
    readonly reason: string;
  }[];
}

/**
 * Cleans up what crashes and given-up turns have left. Any number of sweeps
 * may go on at once, and one may stall anywhere and go on much later: what it
 * then removes bears a name that nobody uses any more.
 */
export async function sweep(
  around: AttachmentSurroundings,
  options: SweepAttachmentsOptions = {},
): Promise<SweepReport> {
  const { database, clock } = around;
  const { olderThan = "1 day" } = options;
  const olderThanMs = durationMs(olderThan, "olderThan");
  const until = clock.now() - olderThanMs;
  const walk = new Sweep(around, options);
  for (const slice of [sweepIntents, giveUpPuts]) {
    for (let isDone = false; !isDone;) {
      const { limit } = walk;
      const swept = await database.write(
        slice,
        { until, limit },
        { signal: options.signal },
      );
      walk.tell(slice === sweepIntents ? { forgotten: swept.count } : {});
      isDone = swept.isDone;
      await database.pause();
    }
  }
  await walk.removeCondemned();
  return walk.report;
}

/** Removes what is condemned, of deleted sessions too. */
export async function removeCondemned(
  around: AttachmentSurroundings,
  options: Omit<SweepAttachmentsOptions, "olderThan"> = {},
): Promise<SweepReport> {
  const walk = new Sweep(around, options);
  await walk.removeCondemned();
  return walk.report;
}

class Sweep {
  readonly limit: number;
  readonly #around: AttachmentSurroundings;
  readonly #options: SweepAttachmentsOptions;
  #report: SweepReport = { forgotten: 0, removed: 0, failed: [] };

  constructor(
    around: AttachmentSurroundings,
    options: SweepAttachmentsOptions,
  ) {
    this.#around = around;
    this.#options = options;
    givenFunction("onProgress", options.onProgress);
    const { rowsPerSlice = 100 } = options;
    this.limit = checkedCount("rowsPerSlice", rowsPerSlice, {
      min: 1,
      max: 10_000,
    });
  }

  get report(): SweepReport {
    return this.#report;
  }

  tell(more: Partial<SweepReport>): void {
    const { forgotten, removed, failed } = this.#report;
    this.#report = {
      forgotten: forgotten + (more.forgotten ?? 0),
      removed: removed + (more.removed ?? 0),
      failed: [...failed, ...(more.failed ?? [])],
    };
    this.#options.onProgress?.(this.#report);
  }

  async removeCondemned(): Promise<void> {
    const { database, bytes } = this.#around;
    const { signal } = this.#options;
    const { limit } = this;
    let after: string | undefined = "";
    while (after !== undefined) {
      const names: readonly string[] = await database.read(
        condemnedCopies,
        { store: bytes.kind, after, limit },
        { signal },
      );
      if (names.length === 0) return;
      await this.#removeCopies(names);
      const isEnd = names.length < limit && signal?.aborted !== true;
      after = isEnd ? undefined : names.at(-1);
      await database.pause();
    }
  }

  async #removeCopies(names: readonly string[]): Promise<void> {
    const { database, bytes } = this.#around;
    const gone: string[] = [];
    const failed: { name: string; reason: string }[] = [];
    for (const name of names) {
      // What is gone already is recorded; the next read then says that it was given up.
      if (this.#options.signal?.aborted === true) break;
      try {
        await bytes.remove(name);
        gone.push(name);
      } catch (error) {
        failed.push({ name, reason: codeOf(error) });
      }
    }
    const removed = await database.write(forgetCopies, { names: gone });
    this.tell({ removed, failed });
  }
}

/** Not the message, which may name paths. */
function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "unknown";
}
