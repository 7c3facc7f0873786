import { setMaxListeners } from "node:events";

/** An abort signal that is made on first access: few bodies read it, and it costs more than the rest of a step. */
export class LateAbort {
  #controller: AbortController | undefined;
  #abort: { readonly reason: unknown } | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      // Each join set and each call of the user may listen: Node takes more than ten listeners for a leak.
      setMaxListeners(0, this.#controller.signal);
      if (this.#abort !== undefined) this.#controller.abort(this.#abort.reason);
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#abort ??= { reason };
    this.#controller?.abort(reason);
  }
}
