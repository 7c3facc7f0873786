import { Request, operationInvalid } from "./operation.ts";
import type { Change } from "./operation.ts";

/**
 * How one run of a body may still end. Both backends keep one per run, so
 * that a body means the same on each: after a statement failed the call can
 * only fail or roll back with a value, even if the body caught the error
 * (Postgres has aborted the transaction; SQLite would have carried on), and
 * after `rollbackWith` nothing more may be written.
 */
export class Fate {
  readonly #name: string;
  #changes: Change[] | undefined;
  #rolledBack = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(name: string, change: Change | undefined) {
    this.#name = name;
    if (change !== undefined) this.#changes = [change];
  }

  /** What subscribers are to be told once the call is durable. */
  get changes(): readonly Change[] {
    return this.#changes ?? [];
  }

  /** Takes a request that is no statement. */
  note(request: Request): void {
    if (!(request instanceof Request))
      throw operationInvalid(
        this.#name,
        "yielded something that is no request. Write `yield*` before operations, row, rows and run.",
      );
    if (request.want === "rollback") this.#rolledBack = true;
    if (request.change !== undefined)
      (this.#changes ??= []).push(request.change);
  }

  /** Throws, past the body, when the call may not run another statement. */
  assertMayRun(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (this.#rolledBack)
      throw operationInvalid(
        this.#name,
        "ran a statement after rollbackWith. Return right after it.",
      );
  }

  /** Remembers that a statement failed; the body is told next. */
  failed(error: unknown): void {
    this.#failure ??= { error };
  }

  /** The end of a body that returned. Throws the failure it swallowed, if any. */
  verdict(): "commit" | "rollback" {
    if (this.#rolledBack) return "rollback";
    if (this.#failure !== undefined) throw this.#failure.error;
    return "commit";
  }
}
