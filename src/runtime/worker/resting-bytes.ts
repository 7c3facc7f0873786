import type { ExecutionId } from "../../model/ids/execution-id.ts";

/** What runs held when they last began to rest, and all of them together. */
export class RestingBytes {
  readonly #each = new Map<ExecutionId, number>();
  bytes = 0;

  add(id: ExecutionId, bytes: number): void {
    this.bytes += bytes - (this.#each.get(id) ?? 0);
    this.#each.set(id, bytes);
  }

  delete(id: ExecutionId): void {
    this.bytes -= this.#each.get(id) ?? 0;
    this.#each.delete(id);
  }
}
