import type { HoldfastError } from "../model/errors.ts";
import type { OwnerId } from "../model/ids/prefixed-id.ts";
import { isolationMismatch, mayRunInside } from "./isolation.ts";
import type { Cover, Isolation, IsolationMarks } from "./isolation.ts";
import { Request, operationInvalid, unansweredCalls } from "./operation.ts";
import type { Afterwards, Change } from "./operation.ts";
import { shortened } from "./statement-errors.ts";
import type { Template } from "./statement.ts";

/**
 * How one run of a body may still end. Both backends keep one per run, so
 * that a body means the same on each: after a statement failed the call can
 * only fail or roll back with a value, even if the body caught the error
 * (Postgres has aborted the transaction; SQLite would have carried on), and
 * after `rollbackWith` nothing more may be written.
 */
export class Fate implements Cover {
  readonly name: string;
  /** Undefined in a read, which is one snapshot whatever it composes. */
  readonly isolation: Isolation | undefined;
  /** Operations entered that answer for what they compose in an old snapshot. */
  #covers = 0;
  #changes: Change[] | undefined;
  readonly #owner: OwnerId | undefined;
  #afterwards: Afterwards[] | undefined;
  #rolledBack = false;
  #forgotten = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    name: string,
    change: Change | undefined,
    isolation?: Isolation,
    isCovered = false,
    owner?: OwnerId,
  ) {
    this.name = name;
    this.#owner = owner;
    this.isolation = isolation;
    if (isCovered) this.#covers = 1;
    if (change !== undefined) this.#changes = [change];
  }

  /** What subscribers are to be told once the call is durable. */
  get changes(): readonly Change[] {
    return this.#changes ?? [];
  }

  /** What is to be done once it is known how the call has ended. */
  get afterwards(): readonly Afterwards[] | undefined {
    return this.#afterwards;
  }

  /**
   * Takes a request that is no statement. The answer is for the operation that
   * begins with it.
   * @throws HoldfastError `ISOLATION_MISMATCH`, `OPERATION_INVALID`
   */
  note(request: Request): Cover | undefined {
    if (!(request instanceof Request))
      throw operationInvalid(
        this.name,
        "yielded something that is no request. Write `yield*` before operations, row, rows and run.",
      );
    if (request.owner !== undefined) this.#assertOwner(request.owner);
    if (request.want === "rollback") this.#rolledBack = true;
    if (request.afterwards !== undefined) (this.#afterwards ??= []).push(request.afterwards);
    if (request.change !== undefined) (this.#changes ??= []).push(request.change);
    return request.marks === undefined
      ? undefined
      : this.#entered(request.change?.operation ?? "", request.marks);
  }

  #assertOwner(owner: OwnerId): void {
    if (this.#owner === undefined || this.#owner === owner) return;
    throw operationInvalid(
      this.name,
      "runs a part that a store of another database has prepared, with the clock, codec and keys of that one. Prepare it with a store over the database that runs it.",
    );
  }

  #entered(operation: string, marks: IsolationMarks): Cover | undefined {
    const { isolation } = this;
    if (isolation === undefined || this.#covers > 0) return undefined;
    if (!mayRunInside(isolation, marks)) throw isolationMismatch(operation, this.name, isolation);
    if (isolation === "readCommitted" || marks.snapshotSafe !== true) return undefined;
    this.#covers += 1;
    return this;
  }

  /** The operation that was entered is over. */
  end(): void {
    this.#covers -= 1;
  }

  /** Runs a stretch of the body without a pause, and counts the calls it made that got no answer. */
  during<T>(stretch: () => T): T {
    const before = unansweredCalls();
    const result = stretch();
    this.ranSince(before);
    return result;
  }

  /** A stretch of the body has run without a pause since there were that many calls without an answer. */
  ranSince(unanswered: number): void {
    this.#forgotten += unansweredCalls() - unanswered;
  }

  /** Throws, past the body, when the call may not run this statement. */
  assertMayRun(want: Request["want"], template: Template): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (this.#rolledBack)
      throw operationInvalid(
        this.name,
        "ran a statement after rollbackWith. Return right after it.",
      );
    // Drivers differ here: one throws, one answers with nothing.
    if (template.returnsRows === (want === "run")) throw wrongHands(this.name, want, template);
  }

  /** Remembers that a statement failed; the body is told next. */
  failed(error: unknown): void {
    this.#failure ??= { error };
  }

  /** The end of a body that returned. Throws the failure it swallowed, if any, and what it forgot. */
  verdict(value: unknown): "commit" | "rollback" {
    if (this.#failure !== undefined && !this.#rolledBack) throw this.#failure.error;
    if (isGenerator(value))
      throw operationInvalid(
        this.name,
        "returned a generator, which nobody runs. Write `return yield* …`.",
      );
    if (this.#forgotten > 0)
      throw operationInvalid(
        this.name,
        `called row, rows, run, rollbackWith or an operation without \`yield*\` (${this.#forgotten} of them), so nothing happened there. ` +
          "Write `yield*` before each such call, and make it only where it is to run.",
        { forgotten: this.#forgotten },
      );
    return this.#rolledBack ? "rollback" : "commit";
  }
}

function isGenerator(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { next, throw: raise } = value as Partial<Generator>;
  return typeof next === "function" && typeof raise === "function";
}

function wrongHands(name: string, want: Request["want"], template: Template): HoldfastError {
  const statement = shortened(template.sqlite);
  return operationInvalid(
    name,
    want === "run"
      ? `gave run a statement that returns rows. Read them with row or rows, or leave out RETURNING: ${statement}`
      : `gave ${want} a statement that returns no rows. Use run, or add RETURNING: ${statement}`,
    { statement },
  );
}

/** The call is durable: does what its body asked for, in order. */
export function afterDurable(actions: readonly Afterwards[] | undefined): void {
  if (actions === undefined) return;
  for (const { durable } of actions)
    try {
      durable?.();
    } catch {
      // The call has succeeded, whatever is wrong with whom it tells.
    }
}

/** The call has rolled back: does what its body asked for, then goes on. */
export function afterRefusal(actions: readonly Afterwards[] | undefined, goOn: () => void): void {
  const asked = actions?.filter(({ refused }) => refused !== undefined) ?? [];
  if (asked.length === 0) return goOn();
  void Promise.allSettled(asked.map(async ({ refused }) => refused?.())).then(goOn);
}
