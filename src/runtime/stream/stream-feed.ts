import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { ChangeHint, Database } from "../../sql/database.ts";
import { executionEnded } from "../../stores/execution/topics.ts";
import type { StreamContext } from "../../stores/stream/context.ts";
import type { NewestChunk, StoredPart, StreamPage, StreamPlace } from "../../stores/stream/read.ts";
import { writeStream } from "../../stores/stream/write.ts";
import type { StreamReads } from "./stream-reads.ts";

/** A stored part with its values. */
export interface ReadPart extends Omit<StoredPart, "payload"> {
  readonly run: ExecutionId;
  readonly values: readonly unknown[];
}

/** What a reader finds behind its places. */
export interface Found {
  readonly parts: readonly ReadPart[];
  readonly newest: readonly NewestChunk[];
  /** True if these are all parts up to the newest chunks. */
  readonly isWhole: boolean;
}

export type Places = ReadonlyMap<number, StreamPlace>;

/** The most that the ring of a feed holds. */
const ringPartsMax = 256;
const ringSizeMax = 1_048_576;

/** The output that a feed follows: that of one run, or of a tree. */
export interface Followed {
  readonly id: ExecutionId;
  readonly execution: number;
  readonly withChildren: boolean;
}

/**
 * Follows the output of a run, or of a tree, for all of its readers in this process. It keeps the
 * newest parts in a ring. A reader holds its places and nothing else: what it still lacks comes from
 * the ring, or, if that is too old, from the database. When no reader waits at a change, the feed ends,
 * and the next call of a reader begins another.
 *
 *   database   1 … 60 │ 61 … 99        places of reader A: 98  → from the ring
 *   ring              └ 61 … 99        places of reader B: 12  → a page from the database
 */
export class StreamFeed {
  /** Grows with everything that readers may want to know. */
  version = 0;
  hasEnded = false;
  isOver = false;
  readonly #followed: Followed;
  readonly #database: Database;
  readonly #store: StreamContext;
  readonly #reads: StreamReads;
  readonly #stop: () => void;
  readonly #onOver: () => void;
  readonly #waiters = new Set<(error?: Error) => void>();
  readonly #places: Map<number, StreamPlace>;
  /** The positions up to which the ring does not hold the output of a run. */
  readonly #from = new Map<number, number>();
  #newest: readonly NewestChunk[] = [];
  #ring: ReadPart[] = [];
  #ringSize = 0;
  #mayHaveEnded = true;
  #isDirty = true;
  #looking: Promise<void> | undefined;

  constructor(
    { store, reads }: { readonly store: StreamContext; readonly reads: StreamReads },
    followed: Followed,
    places: Places,
    onOver: () => void,
  ) {
    this.#followed = followed;
    this.#store = store;
    this.#database = store.database;
    this.#reads = reads;
    this.#onOver = onOver;
    this.#places = new Map(places);
    for (const [execution, { position }] of places) this.#from.set(execution, position);
    const { id, execution, withChildren } = followed;
    this.#stop = this.#database.subscribe(
      (hint) => this.#hear(hint),
      [
        { operation: executionEnded, key: id },
        {
          operation: writeStream(store).name,
          ...(!withChildren && { key: String(execution) }),
        },
      ],
    );
  }

  /** What follows the places of a reader. */
  async behind(places: Places): Promise<Found> {
    await this.#look();
    if (this.#covers(places)) {
      const parts = this.#ring.filter((part) => isBehind(places.get(part.execution), part));
      return { parts, newest: this.#newest, isWhole: true };
    }
    const page = await this.#page(places);
    return { parts: page.parts.map(this.#read(page)), newest: page.newest, isWhole: !page.isCut };
  }

  /** Resolves when something may follow that version. Rejects when it cannot be known. */
  async changed(version: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.version !== version || this.isOver || this.#isDirty || signal?.aborted === true)
      return;
    const release = this.#database.keepAlive();
    let onAbort = (): void => undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        const wake = (error?: Error): void => {
          this.#waiters.delete(wake);
          if (error === undefined) resolve();
          else reject(error);
        };
        onAbort = () => wake();
        signal?.addEventListener("abort", onAbort, { once: true });
        this.#waiters.add(wake);
      });
    } finally {
      signal?.removeEventListener("abort", onAbort);
      release();
    }
  }

  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#stop();
    this.#onOver();
    this.#wake();
  }

  #hear(hint: ChangeHint): void {
    if (hint.kind === "closing") return this.end();
    if (hint.kind === "death") return;
    // No reader waits: one that comes back reads from the database.
    if (this.#waiters.size === 0 && this.#looking === undefined) return this.end();
    this.#isDirty = true;
    if (hint.kind === "unknown" || hint.operation === executionEnded) this.#mayHaveEnded = true;
    this.#look().catch((error: Error) => this.#wake(error));
  }

  /** Reads until nothing new is found. */
  #look(): Promise<void> {
    if (!this.#isDirty && this.#looking === undefined) return Promise.resolve();
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookOnce(): Promise<void> {
    while (this.#isDirty && !this.isOver) {
      this.#isDirty = false;
      try {
        const hasEnded = this.#mayHaveEnded && (await this.#isRunOver());
        if (!hasEnded) this.#mayHaveEnded = false;
        const page = await this.#page(this.#places);
        this.#take(page);
        if (page.isCut) this.#isDirty = true;
        // What was shown before the end of the run is in that page or before it.
        else if (hasEnded) this.hasEnded = true;
      } catch (error) {
        this.#isDirty = true;
        throw error;
      }
      this.version += 1;
      this.#wake();
    }
  }

  async #isRunOver(): Promise<boolean> {
    const { id, execution } = this.#followed;
    const run = await this.#reads.run(id);
    return run === undefined || run.execution !== execution || run.hasEnded;
  }

  #page(places: Places): Promise<StreamPage> {
    const { id, execution, withChildren } = this.#followed;
    if (withChildren) return this.#reads.tree(id, [...places.values()]);
    return this.#reads.page(places.get(execution) ?? { execution, runVersion: 0, position: 0 });
  }

  #take(page: StreamPage): void {
    this.#newest = page.newest;
    for (const part of page.parts.map(this.#read(page))) {
      this.#places.set(part.execution, endOf(part));
      this.#ring.push(part);
      this.#ringSize += part.size;
    }
    if (!page.isCut)
      for (const head of page.newest) {
        const place = this.#places.get(head.execution);
        if (place === undefined || place.position < head.position)
          this.#places.set(head.execution, head);
      }
    let dropped = 0;
    while (this.#ring.length - dropped > ringPartsMax || this.#ringSize > ringSizeMax) {
      const oldest = this.#ring[dropped];
      if (oldest === undefined || dropped === this.#ring.length - 1) break;
      this.#from.set(oldest.execution, endOf(oldest).position);
      this.#ringSize -= oldest.size;
      dropped += 1;
    }
    if (dropped > 0) this.#ring = this.#ring.slice(dropped);
  }

  #read({ newest }: StreamPage): (part: StoredPart) => ReadPart {
    const ids = new Map(newest.map(({ execution, id }) => [execution, id]));
    return ({ payload, ...part }) => {
      const values = this.#store.decode(payload);
      // A codec that only says that values are sealed says it once for all.
      const isList = Array.isArray(values) && values.length === part.chunks;
      return {
        ...part,
        run: ids.get(part.execution) ?? this.#followed.id,
        values: isList ? values : new Array<unknown>(part.chunks).fill(values),
      };
    };
  }

  #covers(places: Places): boolean {
    for (const [execution, from] of this.#from)
      if ((places.get(execution)?.position ?? 0) < from) return false;
    return true;
  }

  #wake(error?: Error): void {
    for (const wake of Array.from(this.#waiters)) wake(error);
  }
}

/** The place of a reader that has read a part. */
function endOf({ execution, runVersion, position, chunks }: ReadPart): StreamPlace {
  return { execution, runVersion, position: position + chunks - 1 };
}

/** True if a reader at this place has not read all of a part. */
export function isBehind(place: StreamPlace | undefined, part: ReadPart): boolean {
  return (
    place === undefined ||
    endOf(part).position > place.position ||
    part.runVersion > place.runVersion
  );
}
