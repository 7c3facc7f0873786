import type { HoldfastError } from "../model/errors.ts";
import type { OwnerId } from "../model/ids/prefixed-id.ts";
import type { AssertedRun } from "./asserted-run.ts";
import { isolationMismatch, mayRunInside, readUnlocked } from "./isolation.ts";
import type { Cover, Isolation, IsolationMarks } from "./isolation.ts";
import { Request, operationInvalid, unansweredCalls } from "./operation.ts";
import type { Afterwards, Change } from "./operation.ts";
import { shortened } from "./statement-errors.ts";
import type { Template } from "./statement.ts";

/**
 * The possible endings of one run of a body. Both backends keep one Fate per run, so that a body
 * means the same on each. After a failed statement the call can only fail or roll back with a
 * value, even if the body caught the error. (Postgres has aborted the transaction; SQLite would
 * have continued.) After `rollbackWith` the body may not write any more.
 */
export class Fate implements Cover {
  readonly name: string;
  /** Undefined in a read, which is one snapshot for everything it composes. */
  readonly isolation: Isolation | undefined;
  /**
   * The number of entered operations that are safe in an old snapshot, together with everything
   * they compose.
   */
  #covers = 0;
  #changes: Change[] | undefined;
  readonly #owner: OwnerId | undefined;
  #afterwards: Afterwards[] | undefined;
  #assertedRun: AssertedRun | undefined;
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

  /** The changes to report to subscribers once the call is durable. */
  get changes(): readonly Change[] {
    return this.#changes ?? [];
  }

  /** The actions to run once the outcome of the call is known. */
  get afterwards(): readonly Afterwards[] | undefined {
    return this.#afterwards;
  }

  /**
   * Accepts a request that is not a statement. The answer goes to the operation or the prepared
   * part that starts with it, or to the question for the asserted run.
   * @throws HoldfastError `ISOLATION_MISMATCH`, `OPERATION_INVALID`
   */
  note(request: Request): Cover | Isolation | AssertedRun | undefined {
    if (!(request instanceof Request))
      throw operationInvalid(
        this.name,
        "yielded something other than a request. Write `yield*` before operations, row, rows and run.",
      );
    if (request.part !== undefined) return this.#began(request.part);
    if (request.asserted !== undefined)
      return (this.#assertedRun = request.asserted.run ?? this.#assertedRun);
    if (request.want === "rollback") this.#rolledBack = true;
    if (request.afterwards !== undefined) (this.#afterwards ??= []).push(request.afterwards);
    if (request.change !== undefined) (this.#changes ??= []).push(request.change);
    return request.marks === undefined
      ? undefined
      : this.#entered(request.change?.operation ?? "", request.marks);
  }

  #began({ owner, inReadsOnly }: NonNullable<Request["part"]>): Isolation | undefined {
    this.#assertOwner(owner);
    const { isolation } = this;
    if (inReadsOnly === undefined || isolation === undefined) return isolation;
    throw readUnlocked(inReadsOnly, this.name, isolation);
  }

  #assertOwner(owner: OwnerId): void {
    if (this.#owner === undefined || this.#owner === owner) return;
    throw operationInvalid(
      this.name,
      "runs a part that a store of another database prepared, with that database's clock, codec and keys. Prepare it with a store of the database that runs it.",
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

  /** Marks the end of the operation that was entered. */
  end(): void {
    this.#covers -= 1;
  }

  /** Runs the body up to its next request, and counts calls in it that got no answer. */
  during<T>(stretch: () => T): T {
    const before = unansweredCalls();
    const result = stretch();
    this.ranSince(before);
    return result;
  }

  /** Counts the calls without an answer that the body made since the given count. */
  ranSince(unanswered: number): void {
    this.#forgotten += unansweredCalls() - unanswered;
  }

  /** Throws when the call may not run this statement. The body cannot catch it. */
  assertMayRun(want: Request["want"], template: Template): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (this.#rolledBack)
      throw operationInvalid(
        this.name,
        "ran a statement after rollbackWith. Return right after it.",
      );
    // Drivers differ here: one throws, another returns nothing.
    if (template.returnsRows === (want === "run")) throw wrongHands(this.name, want, template);
  }

  /** Records a failed statement, before the body gets the error. */
  failed(error: unknown): void {
    this.#failure ??= { error };
  }

  /**
   * Decides how a returned body ends. Throws the error that the body swallowed, or an error about
   * calls that it forgot to yield.
   */
  verdict(value: unknown): "commit" | "rollback" {
    if (this.#failure !== undefined && !this.#rolledBack) throw this.#failure.error;
    if (isGenerator(value))
      throw operationInvalid(
        this.name,
        "returned a generator, which never runs. Write `return yield* …`.",
      );
    if (this.#forgotten > 0)
      throw operationInvalid(
        this.name,
        `called row, rows, run, rollbackWith or an operation without \`yield*\` (${this.#forgotten} of them), so those calls did nothing. ` +
          "Write `yield*` before each such call, and make the call only where it should run.",
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

/** Runs the actions for a durable call, in order. */
export function afterDurable(actions: readonly Afterwards[] | undefined): void {
  if (actions === undefined) return;
  for (const { durable } of actions)
    try {
      durable?.();
    } catch {
      // The call has succeeded, even if a listener fails.
    }
}

/** Runs the actions for a call that was rolled back, then `goOn`. */
export function afterRefusal(actions: readonly Afterwards[] | undefined, goOn: () => void): void {
  const asked = actions?.filter(({ refused }) => refused !== undefined) ?? [];
  if (asked.length === 0) return goOn();
  void Promise.allSettled(asked.map(async ({ refused }) => refused?.())).then(goOn);
}
