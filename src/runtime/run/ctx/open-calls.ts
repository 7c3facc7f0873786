import { ByCall } from "../by-call.ts";
import type { CallShape } from "../replay/call-shape.ts";
import type { CallSite } from "./call-site.ts";

/** A call of `ctx` whose promise has not settled. */
export interface OpenCall {
  readonly call: number;
  readonly shape: CallShape;
  /** True for a call that rejects at once when the run is cancelled. Other calls end by themselves. */
  readonly endsWithRun: boolean;
  readonly promise: Promise<unknown>;
  readonly site: CallSite | undefined;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

const ignored = (): void => undefined;

class Opened implements OpenCall {
  readonly call: number;
  readonly shape: CallShape;
  readonly endsWithRun: boolean;
  readonly promise: Promise<unknown>;
  readonly site: CallSite | undefined;
  #resolve: (value: unknown) => void = ignored;
  #reject: (error: unknown) => void = ignored;

  constructor(call: number, shape: CallShape, endsWithRun: boolean, site: CallSite | undefined) {
    this.call = call;
    this.site = site;
    this.shape = shape;
    this.endsWithRun = endsWithRun;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  resolve(value: unknown): void {
    this.#resolve(value);
  }

  reject(reason: unknown): void {
    // A call that no code awaits must not end the process.
    void this.promise.then(undefined, ignored);
    this.#reject(reason);
  }
}

/** The calls of a run that wait for an outcome or a response, in the order in which they were made. */
export class OpenCalls {
  readonly #calls = new ByCall<OpenCall>();

  open(call: number, shape: CallShape, endsWithRun: boolean, site?: CallSite): Promise<unknown> {
    const opened = new Opened(call, shape, endsWithRun, site);
    this.#calls.put(opened);
    return opened.promise;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Removes and returns a call, which is no longer open. */
  close(call: number): OpenCall | undefined {
    return this.#calls.take(call);
  }

  has(call: number): boolean {
    return this.#calls.get(call) !== undefined;
  }

  /** The calls that a cancellation ends at once. */
  get endingWithRun(): readonly OpenCall[] {
    return this.#calls.all().filter(({ endsWithRun }) => endsWithRun);
  }
}
