import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { idsBelow } from "../../stores/execution/read/tree.ts";
import type { StreamContext } from "../../stores/stream/context.ts";
import {
  readStreamedRuns,
  readStreams,
  readStreamTree,
  type NewestChunk,
  type StoredPart,
  type StreamedRun,
  type StreamPage,
  type StreamPlace,
} from "../../stores/stream/read.ts";

/** The most runs that share a read. */
const sharedMax = 256;

interface Shared<K, T> {
  readonly keys: Map<number | ExecutionId, K>;
  readonly result: Promise<T>;
}

/**
 * Reads live output for all readers of a process. Reads that are asked for at the same moment are
 * one: a write of 500 runs wakes 500 readers.
 */
export class StreamReads {
  readonly #store: StreamContext;
  #pages: Shared<StreamPlace, (execution: number) => StreamPage> | undefined;
  #runs: Shared<ExecutionId, readonly StreamedRun[]> | undefined;

  constructor(store: StreamContext) {
    this.#store = store;
  }

  /** The run of an id; undefined if it is missing or erased. */
  async run(id: ExecutionId): Promise<StreamedRun | undefined> {
    if ((this.#runs?.keys.size ?? sharedMax) >= sharedMax)
      this.#runs = this.#share((ids) => {
        this.#runs = undefined;
        return this.#store.database.read(readStreamedRuns(this.#store), ids);
      });
    this.#runs?.keys.set(id, id);
    return (await this.#runs?.result)?.find((run) => run.id === id);
  }

  /** What follows a place in the output of one run. It has parts if any follow. */
  async page(place: StreamPlace): Promise<StreamPage> {
    const { execution } = place;
    const isFull = (this.#pages?.keys.size ?? sharedMax) >= sharedMax;
    if (isFull || this.#pages?.keys.has(execution) === true)
      this.#pages = this.#share((places) => {
        this.#pages = undefined;
        return this.#store.database.read(readStreams(this.#store), places).then(byRun);
      });
    this.#pages?.keys.set(execution, place);
    const page = (await this.#pages?.result)?.(execution);
    // The runs before it filled the page.
    if (page?.isCut === true && page.parts.length === 0)
      return this.#store.database.read(readStreams(this.#store), [place]);
    return page ?? { newest: [], parts: [], isCut: false };
  }

  /** What follows some places in the output of a run and of all runs below it. */
  tree(id: ExecutionId, places: readonly StreamPlace[]): Promise<StreamPage> {
    const [low, high] = idsBelow(id);
    const { database } = this.#store;
    return database.read(readStreamTree(this.#store), { id, low, high, places });
  }

  #share<K, T>(read: (keys: readonly K[]) => Promise<T>): Shared<K, T> {
    const keys = new Map<number | ExecutionId, K>();
    return { keys, result: Promise.resolve().then(() => read([...keys.values()])) };
  }
}

/** Divides a page by run. A cut concerns the run of the last part, and the runs behind it. */
function byRun({ newest, parts, isCut }: StreamPage): (execution: number) => StreamPage {
  const runs = new Map<number, { newest: NewestChunk[]; parts: StoredPart[] }>();
  for (const head of newest) runs.set(head.execution, { newest: [head], parts: [] });
  for (const part of parts) runs.get(part.execution)?.parts.push(part);
  const last = parts.at(-1)?.execution ?? 0;
  return (execution) => ({
    ...(runs.get(execution) ?? { newest: [], parts: [] }),
    isCut: isCut && execution >= last,
  });
}
