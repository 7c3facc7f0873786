import { HoldfastError } from "../../model/errors.ts";
import {
  runWaitingMax,
  type FoldedStep,
  type StreamPart,
  type StreamWrite,
} from "../../model/execution/stream.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { writeStream } from "../../stores/stream/write.ts";
import type { StreamWriter } from "./stream-writer.ts";

/** A run and the worker that holds it. */
export type OutputRun = Pick<StreamWrite, "id" | "execution" | "fence" | "lockVersion"> & {
  readonly continuation: number;
};

/** Chunks of one attempt that wait to be written. */
interface WaitingChunks {
  readonly step: StepOutput;
  readonly at: number;
  readonly texts: string[];
  size: number;
}

/** The live output of one run, as its worker writes it. */
export class RunOutput {
  readonly run: OutputRun;
  readonly #writer: StreamWriter;
  readonly #waiting = new Map<StepOutput, WaitingChunks>();
  #folded: FoldedStep[] = [];
  /** The size of what waits and what is being written. */
  #size = 0;
  /** Chunks that were lost before those that wait, and that were dropped behind them. */
  #lost = 0;
  #dropped = 0;
  #position = 0;
  /** The attempts whose chunks are being written. */
  #writing: ReadonlySet<StepOutput> | undefined;
  #begun = 0;
  #hasFailed = false;
  #isOver = false;

  constructor(writer: StreamWriter, run: OutputRun) {
    this.#writer = writer;
    this.run = run;
  }

  step(call: number, name: string | null, attempt: number): StepOutput {
    return new StepOutput(this, { call, name, attempt });
  }

  /** The number of writes that were begun, and of those that are over. */
  get writes(): { readonly begun: number; readonly over: number } {
    return {
      begun: this.#begun,
      over: this.#writing === undefined ? this.#begun : this.#begun - 1,
    };
  }

  /** True if a gap is still to be written for chunks that were lost. */
  get hasLost(): boolean {
    return this.#lost > 0;
  }

  /** Nothing more is written: the worker no longer has the run. */
  drop(): void {
    this.#isOver = true;
    this.#forget();
  }

  /** @throws HoldfastError `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE` */
  add(step: StepOutput, value: unknown): boolean {
    if (this.#isOver) return false;
    const { store, clock } = this.#writer.parts;
    const text = store.codec.clear.encode(value);
    if (text.length >= runWaitingMax) throw chunkTooLarge(text.length);
    const isFirst = !step.hasBegun;
    step.hasBegun = true;
    const size = text.length + 1;
    const hasRoom = this.#size + size <= runWaitingMax && this.#writer.hasRoomFor(size);
    if (this.#dropped > 0 || !hasRoom) {
      this.#dropped += 1;
      this.#writer.ask(this, false);
      return false;
    }
    let chunks = this.#waiting.get(step);
    if (chunks === undefined) {
      chunks = { step, at: clock.now(), texts: [], size: 0 };
      this.#waiting.set(step, chunks);
    }
    chunks.texts.push(text);
    chunks.size += size;
    this.#resize(size);
    this.#writer.ask(this, isFirst);
    return true;
  }

  /**
   * Resolves when the chunks are written that an attempt has shown; undefined if none wait. Other
   * attempts of the run may show more meanwhile, which this does not wait for.
   */
  settled(step: StepOutput): Promise<void> | undefined {
    const isWaiting = this.#waiting.has(step) || this.#dropped + this.#lost > 0;
    if (isWaiting) return this.#writer.written(this, this.#begun + 1);
    if (this.#writing?.has(step) !== true) return undefined;
    return this.#writer.written(this, this.#begun);
  }

  /** Notes that a step is recorded: what it wrote is complete. */
  fold(call: number, upTo: number): void {
    if (this.#isOver) return;
    this.#folded.push({ continuation: this.run.continuation, call, upTo });
    this.#writer.ask(this, false);
  }

  /** Writes what waits. Never rejects: chunks that cannot be written are lost. */
  async write(): Promise<void> {
    const taken = [...this.#waiting.values()];
    const lost = this.#lost;
    const dropped = this.#dropped;
    const folded = this.#folded;
    this.#waiting.clear();
    this.#lost = 0;
    this.#dropped = 0;
    this.#folded = [];
    this.#begun += 1;
    if (taken.length === 0 && lost + dropped === 0 && folded.length === 0) return;
    const size = taken.reduce((sum, chunks) => sum + chunks.size, 0);
    this.#writing = new Set(taken.map(({ step }) => step));
    try {
      const { store } = this.#writer.parts;
      const parts = taken.map((chunks) => this.#partOf(chunks));
      const { execution, id, fence, lockVersion } = this.run;
      const held = { execution, id, fence, lockVersion };
      const input = { ...held, after: this.#position, lost, parts, dropped, folded };
      const { position, isFull } = await store.database.write(writeStream(store), input);
      this.#writer.succeeded();
      this.#hasFailed = false;
      if (position !== null) this.#wrote(taken, position, isFull);
      else if (taken.length + lost + dropped > 0) this.drop();
    } catch (error) {
      this.#writer.failed(error);
      if (!this.#isOver) this.#notWrote(taken, lost + dropped, folded);
    } finally {
      this.#writing = undefined;
      this.#resize(-size);
    }
  }

  /** Keeps what the next write makes up for, and asks for that write once. */
  #notWrote(taken: readonly WaitingChunks[], missing: number, folded: readonly FoldedStep[]): void {
    this.#lost += missing + taken.reduce((sum, { texts }) => sum + texts.length, 0);
    this.#folded = [...folded, ...this.#folded];
    if (!this.#hasFailed) this.#writer.ask(this, false);
    this.#hasFailed = true;
  }

  #wrote(taken: readonly WaitingChunks[], position: number, isFull: boolean): void {
    this.#position = position;
    if (isFull) return;
    for (const { step } of taken) step.written = position;
  }

  #partOf({ step, at, texts }: WaitingChunks): StreamPart {
    const payload = this.#writer.parts.store.codec.encodeText(`[${texts.join(",")}]`) as Encoded;
    return {
      continuation: this.run.continuation,
      call: step.of.call,
      step: step.of.name,
      attempt: step.of.attempt,
      isFirst: step.written === 0,
      chunks: texts.length,
      size: payload.length,
      at,
      payload,
    };
  }

  #forget(): void {
    for (const { size } of this.#waiting.values()) this.#resize(-size);
    this.#waiting.clear();
    this.#folded = [];
    this.#lost = 0;
    this.#dropped = 0;
  }

  #resize(by: number): void {
    this.#size += by;
    this.#writer.size += by;
  }
}

/** The live output of one attempt of a step, or of an activity. */
export class StepOutput {
  readonly of: { readonly call: number; readonly name: string | null; readonly attempt: number };
  /** True once a chunk was shown. */
  hasBegun = false;
  /** The position up to which it is written; 0 if nothing is. */
  written = 0;
  readonly #run: RunOutput;
  #isOver = false;

  constructor(run: RunOutput, of: StepOutput["of"]) {
    this.#run = run;
    this.of = of;
  }

  /** @throws HoldfastError `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE` */
  show(value: unknown): boolean {
    return !this.#isOver && this.#run.add(this, value);
  }

  /** Ends the output: later chunks are refused. Returns a promise if some wait to be written. */
  close(): Promise<void> | undefined {
    this.#isOver = true;
    return this.hasBegun ? this.#run.settled(this) : undefined;
  }

  /** Nothing more of the run is written. */
  drop(): void {
    this.#isOver = true;
    this.#run.drop();
  }

  /** Notes that the attempt is over. */
  fold(): void {
    this.#isOver = true;
    if (this.written > 0) this.#run.fold(this.of.call, this.written);
  }
}

function chunkTooLarge(size: number): HoldfastError {
  return new HoldfastError(
    "VALUE_TOO_LARGE",
    `A chunk of live output takes ${size} characters as text; the limit is ${runWaitingMax - 1}. Show it in several smaller chunks.`,
    { size, limit: runWaitingMax - 1 },
  );
}
