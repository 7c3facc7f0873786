import { HoldfastError } from "../model/errors.ts";
import type { ErrorDetails } from "../model/errors.ts";
import type { OwnerId } from "../model/ids/prefixed-id.ts";
import { excerpt } from "../model/values/excerpt.ts";
import type { AssertedRun } from "./asserted-run.ts";
import { isIsolation } from "./isolation.ts";
import type { Cover, Isolation, IsolationMarks } from "./isolation.ts";
import { Statement } from "./statement.ts";

/** A request from a body to the transaction it runs in. */
export class Request {
  readonly want: "row" | "rows" | "run" | "rollback" | "touch" | "afterwards";
  readonly statement: Statement | undefined;
  readonly change: Change | undefined;
  /** The isolation marks of the operation that starts here, if one does. */
  readonly marks: IsolationMarks | undefined;
  readonly afterwards: Afterwards | undefined;
  /** The prepared part that starts here, if one does. */
  readonly part: PreparedPart | undefined;
  /** Notes the run whose lock was asserted, or asks for it: see `assertedRun`. */
  readonly asserted: { readonly run: AssertedRun | undefined } | undefined;

  constructor(
    want: Request["want"],
    statement: Statement | undefined,
    change: Change | undefined,
    marks?: IsolationMarks,
    later?: Afterwards,
    part?: PreparedPart,
    asserted?: Request["asserted"],
  ) {
    this.want = want;
    this.statement = statement;
    this.change = change;
    this.marks = marks;
    this.afterwards = later;
    this.part = part;
    this.asserted = asserted;
  }
}

/** Actions to run once the outcome of a call is known; see `afterwards`. */
export interface Afterwards {
  /** Called when the call is durable, before its caller gets the result. */
  readonly durable?: () => void;
  /**
   * Called when the call was rolled back, by an error or by `rollbackWith`. The caller gets its
   * answer when this promise settles.
   */
  readonly refused?: () => Promise<unknown>;
}

/** A store call that was prepared as a part of a transaction. */
interface PreparedPart {
  /** The owner of the database for which it was prepared. */
  readonly owner: OwnerId;
  /** The name of its operation when it may run only in reads. */
  readonly inReadsOnly: string | undefined;
}

/** The aggregate that an operation changed, as reported to subscribers. */
export interface Change {
  readonly operation: string;
  readonly key: string;
}

/**
 * A piece of a transaction: a generator that yields requests and returns its result. It cannot
 * await, so no transaction stays open across a network call. It may be retried (busy, deadlock,
 * batch retry), so it must be pure apart from its statements.
 */
export type Tx<T> = Generator<Request, T, unknown>;

/**
 * The number of calls to `row`, `rows`, `run`, `rollbackWith` and operations in this process that
 * got no answer. A call without its `yield*` compiles and does nothing, even in a loop or a spread
 * that takes it for a list. A body runs without a pause between two requests, so any growth of the
 * count in that time is its own forgotten calls.
 */
let unanswered = 0;

export function unansweredCalls(): number {
  return unanswered;
}

/** Returns the first row, or undefined. For SELECT, or any statement with RETURNING. */
export function row<R extends object = Record<string, unknown>>(
  statement: Statement,
): Tx<R | undefined> {
  return asked(new Request("row", checked(statement), undefined));
}

/** Returns all rows. For SELECT, or any statement with RETURNING. */
export function rows<R extends object = Record<string, unknown>>(
  statement: Statement,
): Tx<readonly R[]> {
  return asked(new Request("rows", checked(statement), undefined));
}

/** Runs a statement without RETURNING and returns the number of changed rows. */
export function run(statement: Statement): Tx<number> {
  return asked(new Request("run", checked(statement), undefined));
}

function asked<T>(request: Request): Tx<T> {
  unanswered += 1;
  return asking<T>(request);
}

function* asking<T>(request: Request): Tx<T> {
  let answer: unknown;
  try {
    answer = yield request;
  } catch (error) {
    unanswered -= 1;
    throw error;
  }
  // A loop answers with undefined, and only `row` may answer that nothing was found.
  if (answer !== undefined || request.want === "row") unanswered -= 1;
  return answer as T;
}

/** Checks the statement: JavaScript passes anything, and a missing one would do nothing. */
function checked(statement: Statement): Statement {
  if (statement instanceof Statement) return statement;
  throw new HoldfastError(
    "OPERATION_INVALID",
    `row, rows and run take a statement, got ${statement === undefined ? "undefined" : `a ${typeof statement}`}. ` +
      "Write it with the tag `sql` before the backquote: run(sql`DELETE FROM account`).",
  );
}

/**
 * Rolls back and still returns a value: `return yield* rollbackWith(v)`. From here on the call can
 * only end by rolling back, even if it is composed. The returned value reaches the caller, and a
 * further statement is an error.
 */
export function rollbackWith<T>(value: T): Tx<T> {
  unanswered += 1;
  return rollingBack(value);
}

function* rollingBack<T>(value: T): Tx<T> {
  yield new Request("rollback", undefined, undefined);
  unanswered -= 1;
  return value;
}

/**
 * Reports a change of `key` to subscribers once the call is durable. It is more precise than the
 * name of the operation.
 */
export function* announce(topic: string, key: string): Tx<void> {
  yield new Request("touch", undefined, { operation: topic, key });
}

/**
 * Runs actions after the call has ended, even if it is composed. `durable` can notify listeners.
 * `refused` can write in its own transaction. Both are discarded when the body is retried or the
 * outcome is unknown. Errors in them are ignored, because they do not change the result.
 */
export function* afterwards(actions: Afterwards): Tx<void> {
  yield new Request("afterwards", undefined, undefined, undefined, actions);
}

/**
 * Starts a prepared part. Returns the isolation of the containing write, or undefined in a read.
 * Refuses a write of another database than the one whose store prepared the part. Refuses any write
 * when the part is for reads only.
 */
export function* runsIn(
  { owner, actsFor = owner }: { readonly owner: OwnerId; readonly actsFor?: OwnerId },
  inReadsOnly?: string,
): Tx<Isolation | undefined> {
  const part = { owner: actsFor, inReadsOnly };
  const answer = yield new Request("touch", undefined, undefined, undefined, undefined, part);
  return answer as Isolation | undefined;
}

/** A set form's answer for one input. Undefined passes the input to `one`. */
export interface Done<O> {
  readonly value: O;
}

export function done<O>(value: O): { readonly value: O } {
  return { value };
}

export interface OperationForms<I, O> extends IsolationMarks {
  /** The aggregate that the input addresses, for routing, batching, metrics and hints. */
  readonly key: (input: I) => string;
  /** The meaning of the operation. */
  readonly one: (input: I) => Tx<O>;
  /**
   * Does the same for many inputs of distinct keys, in a few statements of Postgres' own SQL. It
   * answers only inputs that succeeded as `one` would have. For the others (skipped, refused) it
   * returns undefined, and `one` decides.
   */
  readonly many?: (inputs: readonly I[]) => Tx<readonly (Done<O> | undefined)[]>;
  /**
   * False for inputs that `many` would always leave to `one`, for any content of the database. They
   * go to `one` directly, without a useless transaction. By default `many` gets all inputs.
   */
  readonly manyTakes?: (input: I) => boolean;
}

/**
 * A named change or question, written once for both databases. Pass it to `database.write` or
 * `database.read`, or compose it: `yield* appendEvent(a)`.
 */
export interface Operation<I, O> extends OperationForms<I, O> {
  (input: I): Tx<O>;
  readonly name: string;
}

/**
 * Defines an operation. As the outermost call of a transaction it is serializable unless it
 * declares `isolation: "readCommitted"`. Serializable means that the rows it selects are unchanged
 * when it commits, or it is retried. Inside another operation or body the outermost call decides.
 *
 * @throws HoldfastError `OPERATION_INVALID`
 * @example
 * const rename = operation("rename", {
 *   key: (input: { id: string; name: string }) => input.id,
 *   *one({ id, name }) {
 *     return yield* run(sql`UPDATE app_user SET name = ${name} WHERE id = ${id}`);
 *   },
 * });
 * @example
 * // Many callers change the same row: a body that locks it first is not run again.
 * const take = operation("take", {
 *   key: (input: { item: string }) => input.item,
 *   isolation: "readCommitted",
 *   *one({ item }) {
 *     const found = yield* row<{ left: number }>(
 *       sql`SELECT left_over AS "left" FROM stock WHERE item = ${item} ${lockRow}`);
 *     if (found === undefined || found.left === 0) return false;
 *     yield* run(sql`UPDATE stock SET left_over = ${found.left - 1} WHERE item = ${item}`);
 *     return true;
 *   },
 * });
 */
export function operation<I, O>(name: string, forms: OperationForms<I, O>): Operation<I, O> {
  checkForms(name, forms);
  function composed(input: I): Tx<O> {
    unanswered += 1;
    return composing(input);
  }
  function* composing(input: I): Tx<O> {
    const cover = yield new Request(
      "touch",
      undefined,
      { operation: name, key: forms.key(input) },
      forms,
    );
    unanswered -= 1;
    if (cover === undefined) return yield* forms.one(input);
    try {
      return yield* forms.one(input);
    } finally {
      (cover as Cover).end();
    }
  }
  Object.defineProperty(composed, "name", { value: name });
  return Object.assign(composed, forms);
}

const storeOperations = new WeakSet<object>();
const unflushed = new WeakSet<object>();

/**
 * The forms of a store operation, whose body gets the context of its store. A set form gets none,
 * because inputs of several stores over one database may share a set.
 */
export interface StoreForms<C, I, O> extends Omit<OperationForms<I, O>, "one"> {
  readonly one: (context: C, input: I) => Tx<O>;
  /**
   * Declares that nothing acknowledged rests on what it writes or reads: live output of runs. On its
   * own it does not wait for a flush. As a part of another call it is like any other operation.
   */
  readonly isUnflushed?: true;
}

/**
 * A store operation bound to a context, and so to a clock and a codec. Each context always yields
 * the same operation.
 */
export type StoreOperation<C extends object, I, O> = (context: C) => Operation<I, O>;

/**
 * Defines a store operation. Its input is data. The context supplies everything else, such as a
 * clock to read once a lock is held. The operation locks the rows it decides by, and expects to see
 * all commits before it got the lock. So it is `readCommitted` by default.
 */
export function storeOperation<C extends object, I, O>(
  name: string,
  forms: StoreForms<C, I, O>,
): StoreOperation<C, I, O> {
  const made = new WeakMap<C, Operation<I, O>>();
  return (context) => {
    const known = made.get(context);
    if (known !== undefined) return known;
    const { one, isUnflushed, ...others } = forms;
    const inContext = plainOperation<I, O>(name, {
      ...others,
      one: (input) => one(context, input),
    });
    if (isUnflushed) unflushed.add(inContext);
    made.set(context, inContext);
    return inContext;
  };
}

/** Defines a store operation that needs no context. */
export function plainOperation<I, O>(name: string, forms: OperationForms<I, O>): Operation<I, O> {
  const made = operation(name, { isolation: "readCommitted", ...forms });
  storeOperations.add(made);
  return made;
}

/** False for a user's operation, whose lock order is unknown. */
export function isStoreOperation(callee: object): boolean {
  return storeOperations.has(callee);
}

/** True for an operation that waits for no flush when it is called on its own. */
export function isUnflushedOperation(callee: object): boolean {
  return unflushed.has(callee);
}

const formNames: readonly string[] = [
  "key",
  "one",
  "many",
  "manyTakes",
  "isolation",
  "snapshotSafe",
] satisfies (keyof OperationForms<never, unknown>)[];

function checkForms<I, O>(name: string, forms: OperationForms<I, O>): void {
  if (typeof name !== "string" || name === "")
    throw new HoldfastError(
      "OPERATION_INVALID",
      'An operation needs a name. Write operation("rename", { key: …, *one(input) { … } }).',
    );
  if (typeof forms?.key !== "function" || typeof forms.one !== "function")
    throw operationInvalid(
      name,
      "needs `key: (input) => …` and a generator function `*one(input) { … }`.",
    );
  for (const given of Object.keys(forms))
    if (!formNames.includes(given))
      throw operationInvalid(
        name,
        `has the unknown property ${excerpt(given)}. The properties are: ${formNames.join(", ")}.`,
      );
  if (forms.many !== undefined && typeof forms.many !== "function")
    throw operationInvalid(
      name,
      "has a `many` that is not a function. Write `*many(inputs) { … }`, or leave it out.",
    );
  checkIsolation(name, forms);
}

function checkIsolation<I, O>(
  name: string,
  { isolation, snapshotSafe, many }: OperationForms<I, O>,
): void {
  if (isolation !== undefined && !isIsolation(isolation))
    throw operationInvalid(
      name,
      'has an `isolation` that is neither "serializable" nor "readCommitted".',
    );
  if (many !== undefined && isolation !== "readCommitted")
    throw operationInvalid(
      name,
      'has a set form, `many`, and so needs `isolation: "readCommitted"`: one transaction for many callers would be retried for all of them. ' +
        "Lock the rows that it decides by with `lockRow`, in `one` too.",
    );
  if (snapshotSafe === undefined) return;
  if (!Object.is(snapshotSafe, true) || isolation !== "readCommitted")
    throw operationInvalid(
      name,
      'may declare `snapshotSafe: true` only together with `isolation: "readCommitted"`: serializable operations run inside serializable calls anyway.',
    );
}

/** The error for a body that breaks the rules above. */
export function operationInvalid(
  name: string,
  why: string,
  details: ErrorDetails = {},
): HoldfastError {
  return new HoldfastError("OPERATION_INVALID", `Operation "${name}" ${why}`, {
    operation: name,
    ...details,
  });
}
