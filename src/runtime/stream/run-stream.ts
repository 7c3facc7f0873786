import { HoldfastError } from "../../model/errors.ts";
import { parseExecutionId, type ExecutionId } from "../../model/ids/execution-id.ts";
import { givenFlag, givenSignal, optionsOf } from "../../model/shape.ts";
import type { StreamContext } from "../../stores/stream/context.ts";
import type { NewestChunk, StreamPlace } from "../../stores/stream/read.ts";
import type { LiveOutput, StreamOptions } from "./live-output.ts";
import { isBehind, StreamFeed, type Followed, type Places, type ReadPart } from "./stream-feed.ts";
import { cursorOf, placesOf } from "./stream-cursor.ts";
import { StreamReads } from "./stream-reads.ts";

interface RunStreamsParts {
  readonly store: StreamContext;
  /** Fails when there is no such run. */
  readonly assertThere: (id: ExecutionId) => Promise<unknown>;
}

const optionNames = [
  "after",
  "children",
  "signal",
] as const satisfies readonly (keyof StreamOptions)[];

/** A reader as its caller opened it. */
interface Opened {
  readonly id: ExecutionId;
  readonly withChildren: boolean;
  readonly after: Places | undefined;
  readonly signal: AbortSignal | undefined;
  readonly check: (() => Promise<void>) | undefined;
}

/** The readers of live output in a process. Readers of one run share what they read. */
export class RunStreams {
  readonly #parts: RunStreamsParts;
  readonly #reads: StreamReads;
  readonly #feeds = new Map<string, StreamFeed>();
  /** The number of readers of each feed. */
  readonly #readers = new Map<string, number>();

  constructor(parts: RunStreamsParts) {
    this.#parts = parts;
    this.#reads = new StreamReads(parts.store);
  }

  /** Checks the options, and reads nothing before the first value is asked for. */
  open(
    run: string,
    given: StreamOptions | undefined,
    check?: () => Promise<void>,
  ): AsyncIterable<LiveOutput> {
    const options = optionsOf<StreamOptions>(given, optionNames);
    const { after, children = false, signal } = options;
    givenFlag("children", children);
    givenSignal(signal);
    const id = parseExecutionId(run);
    const places = after === undefined ? undefined : placesOf(id, children, after);
    const reader = { id, withChildren: children, after: places, signal, check };
    return { [Symbol.asyncIterator]: () => this.#read(reader) };
  }

  async *#read({
    id,
    withChildren,
    after,
    signal,
    check,
  }: Opened): AsyncGenerator<LiveOutput, void, undefined> {
    refuseAborted(id, signal);
    await check?.();
    await this.#parts.assertThere(id);
    const run = await this.#reads.run(id);
    if (run === undefined) return yield { kind: "end" };
    const followed: Followed = { id, execution: run.execution, withChildren };
    const name = `${withChildren ? "tree" : "run"} ${id}`;
    this.#readers.set(name, (this.#readers.get(name) ?? 0) + 1);
    const reader = new Reader(id, withChildren, after);
    try {
      for (;;) {
        refuseAborted(id, signal);
        const feed = this.#feed(name, followed, reader.places);
        const { version, hasEnded } = feed;
        const { parts, newest, isWhole } = await feed.behind(reader.places);
        let isNew = false;
        for (const output of reader.read(parts, newest, isWhole)) {
          isNew = true;
          yield output;
          refuseAborted(id, signal);
        }
        if (isNew || !isWhole) continue;
        if (hasEnded) return yield { kind: "end" };
        await feed.changed(version, signal);
      }
    } finally {
      this.#left(name);
    }
  }

  #feed(name: string, followed: Followed, places: Places): StreamFeed {
    const open = this.#feeds.get(name);
    if (open !== undefined) return open;
    const feed = new StreamFeed(
      { store: this.#parts.store, reads: this.#reads },
      followed,
      places,
      () => {
        if (this.#feeds.get(name) === feed) this.#feeds.delete(name);
      },
    );
    this.#feeds.set(name, feed);
    return feed;
  }

  #left(name: string): void {
    const left = (this.#readers.get(name) ?? 1) - 1;
    if (left > 0) return void this.#readers.set(name, left);
    this.#readers.delete(name);
    this.#feeds.get(name)?.end();
  }
}

/** Turns stored parts into the output that one reader gets, and knows how far the reader is. */
class Reader {
  readonly #id: ExecutionId;
  readonly #withChildren: boolean;
  #places: Places;
  /** True until it is known whether the output exists that the cursor names. */
  #isResuming: boolean;

  constructor(id: ExecutionId, withChildren: boolean, after: Places | undefined) {
    this.#id = id;
    this.#withChildren = withChildren;
    this.#places = after ?? new Map<number, StreamPlace>();
    this.#isResuming = after !== undefined;
  }

  get places(): Places {
    return this.#places;
  }

  *read(
    parts: readonly ReadPart[],
    newest: readonly NewestChunk[],
    isWhole: boolean,
  ): Generator<LiveOutput, void, undefined> {
    if (this.#isResuming) yield* this.#resume(newest);
    for (const part of parts)
      if (isBehind(this.#places.get(part.execution), part)) yield* this.#readPart(part);
    if (!isWhole) return;
    for (const head of newest) {
      const { execution, runVersion, position } = head;
      if ((this.#places.get(execution)?.position ?? 0) >= position) continue;
      this.#goTo({ execution, runVersion, position });
      yield this.#gap(head.id);
    }
  }

  /** Reports output that is gone: it is no longer kept, or the cursor is of another database. */
  *#resume(newest: readonly NewestChunk[]): Generator<LiveOutput, void, undefined> {
    this.#isResuming = false;
    const there = new Set(newest.map(({ execution }) => execution));
    const kept = [...this.#places].filter(([execution]) => there.has(execution));
    if (kept.length === this.#places.size) return;
    this.#places = new Map(kept);
    yield this.#gap(this.#id);
  }

  *#readPart(part: ReadPart): Generator<LiveOutput, void, undefined> {
    const { execution, runVersion, position, run, at, attempt, values } = part;
    const step = part.step ?? undefined;
    const place = this.#places.get(execution);
    const read = place?.position ?? 0;
    const isRepeated = place !== undefined && position <= read && runVersion > place.runVersion;
    const from = isRepeated ? 0 : Math.max(0, read + 1 - position);
    if (isRepeated || position > read + 1) {
      this.#goTo({ execution, runVersion, position: position - 1 });
      yield this.#gap(run);
    }
    if (part.supersedes === 1 && from === 0)
      yield { kind: "superseded", cursor: this.#cursor(), run, step };
    for (let index = from; index < values.length; index += 1) {
      this.#goTo({ execution, runVersion, position: position + index });
      const value = values[index];
      yield { kind: "chunk", cursor: this.#cursor(), at, run, step, attempt, value };
    }
  }

  #goTo(place: StreamPlace): void {
    this.#places = new Map(this.#places).set(place.execution, place);
  }

  #gap(run: string): LiveOutput {
    return { kind: "gap", cursor: this.#cursor(), run };
  }

  #cursor(): string {
    return cursorOf(this.#id, this.#withChildren, this.#places);
  }
}

function refuseAborted(id: ExecutionId, signal: AbortSignal | undefined): void {
  if (signal?.aborted !== true) return;
  throw new HoldfastError(
    "ABORTED",
    `The signal ended the reading of the live output of ${id}. Continue with the cursor of the last output.`,
    { id },
    { cause: signal.reason },
  );
}
