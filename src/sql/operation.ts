import { HoldfastError } from "../model/errors.ts";
import type { ErrorDetails } from "../model/errors.ts";
import type { OwnerId } from "../model/ids/prefixed-id.ts";
import { excerpt } from "../model/values/excerpt.ts";
import { isIsolation } from "./isolation.ts";
import type { Cover, IsolationMarks } from "./isolation.ts";
import { Statement } from "./statement.ts";

/** What a body may ask of the transaction it runs in. */
export class Request {
  readonly want: "row" | "rows" | "run" | "rollback" | "touch" | "afterwards";
  readonly statement: Statement | undefined;
  readonly change: Change | undefined;
  /** Of the operation that begins here, if one does. */
  readonly marks: IsolationMarks | undefined;
  readonly afterwards: Afterwards | undefined;
  /** Of the database for which a part was prepared, where one begins. */
  readonly owner: OwnerId | undefined;

  constructor(
    want: Request["want"],
    statement: Statement | undefined,
    change: Change | undefined,
    marks?: IsolationMarks,
    later?: Afterwards,
    owner?: OwnerId,
  ) {
    this.want = want;
    this.statement = statement;
    this.change = change;
    this.marks = marks;
    this.afterwards = later;
    this.owner = owner;
  }
}

/** What is to be done once it is known how a call has ended: see `afterwards`. */
export interface Afterwards {
  /** The call is durable; its caller is told next. */
  readonly durable?: () => void;
  /** The call has rolled back, by an error or by `rollbackWith`; its caller is told when this has ended. */
  readonly refused?: () => Promise<unknown>;
}

/** Which aggregate an operation wrote to: what subscribers are told. */
export interface Change {
  readonly operation: string;
  readonly key: string;
}

/**
 * A piece of a transaction: a generator that yields requests and returns its
 * result. It cannot await, so no transaction is held across a network call;
 * it may be run again (busy, deadlock, batch re-run), so it must be pure apart
 * from its statements.
 */
export type Tx<T> = Generator<Request, T, unknown>;

/**
 * Calls of `row`, `rows`, `run`, `rollbackWith` and operations that were made
 * in this process and got no answer. Without its `yield*` such a call compiles
 * and does nothing, also in a loop or a spread, which take it for a list. A
 * body runs without a pause between two requests, so what the count grew by
 * over all of its stretches is what that body forgot.
 */
let unanswered = 0;

export function unansweredCalls(): number {
  return unanswered;
}

/** The first row, or undefined. For a statement that returns rows: SELECT, or one with RETURNING. */
export function row<R extends object = Record<string, unknown>>(
  statement: Statement,
): Tx<R | undefined> {
  return asked(new Request("row", checked(statement), undefined));
}

/** All rows. For a statement that returns rows: SELECT, or one with RETURNING. */
export function rows<R extends object = Record<string, unknown>>(
  statement: Statement,
): Tx<readonly R[]> {
  return asked(new Request("rows", checked(statement), undefined));
}

/** Runs a statement without RETURNING and tells how many rows it changed. */
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
  // A loop answers nothing, and only `row` may answer that there is nothing.
  if (answer !== undefined || request.want === "row") unanswered -= 1;
  return answer as T;
}

/** JavaScript lets anything through, and a missing statement would do nothing. */
function checked(statement: Statement): Statement {
  if (statement instanceof Statement) return statement;
  throw new HoldfastError(
    "OPERATION_INVALID",
    `row, rows and run take a statement, got ${statement === undefined ? "nothing" : `a ${typeof statement}`}. ` +
      "Write it with the tag `sql` before the backquote: run(sql`DELETE FROM account`).",
  );
}

/**
 * The verdict "roll back, and still answer": `return yield* rollbackWith(v)`.
 * From here on the call can only end by rolling back, wherever it is composed; the
 * value it returns reaches the caller, and a further statement is an error.
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
 * Tells subscribers, once the call is durable, that something about `key` has
 * changed: more exactly than the name of the operation could say it.
 */
export function* announce(topic: string, key: string): Tx<void> {
  yield new Request("touch", undefined, { operation: topic, key });
}

/**
 * Has something done after the call has ended, wherever it is composed: whom to
 * tell once it is durable, what to write in a transaction of its own when it
 * was refused. Forgotten when the body is run again, and when the outcome is
 * unknown. What fails there fails silently: it changes nothing about the answer.
 */
export function* afterwards(actions: Afterwards): Tx<void> {
  yield new Request("afterwards", undefined, undefined, undefined, actions);
}

/** Refuses to go on in a write of another database than the one whose store prepared this part. */
export function* runsIn({ owner }: { readonly owner: OwnerId }): Tx<void> {
  yield new Request("touch", undefined, undefined, undefined, undefined, owner);
}

/** A set form's answer for one input; undefined sends the input to `one`. */
export interface Done<O> {
  readonly value: O;
}

export function done<O>(value: O): { readonly value: O } {
  return { value };
}

export interface OperationForms<I, O> extends IsolationMarks {
  /** The aggregate the input addresses: routing, batching, metrics, hints. */
  readonly key: (input: I) => string;
  /** The meaning of the operation. */
  readonly one: (input: I) => Tx<O>;
  /**
   * The same for many inputs of distinct keys, in Postgres' own SQL and few
   * statements. It answers only for inputs that succeeded as `one` would have;
   * the others (skipped, refused) it leaves undefined and `one` decides.
   */
  readonly many?: (inputs: readonly I[]) => Tx<readonly (Done<O> | undefined)[]>;
  /**
   * False for inputs that `many` would leave to `one` whatever the database
   * holds; they go there at once, without a transaction for nothing. Unless it is
   * given, `many` is asked about all.
   */
  readonly manyTakes?: (input: I) => boolean;
}

/**
 * A named change or question, written once for both databases. Give it to
 * `database.write` or `database.read`, or compose it: `yield* appendEvent(a)`.
 */
export interface Operation<I, O> extends OperationForms<I, O> {
  (input: I): Tx<O>;
  readonly name: string;
}

/**
 * Defines an operation. As the outermost call of a transaction it runs
 * serializable unless it says `isolation: "readCommitted"`: what it selects is
 * still so when it commits, or it is run again. Inside another operation or
 * body the outermost call decides.
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

/**
 * The forms of an operation of ours: its body is given the context of its
 * store. A set form is not, since inputs of several stores over one database
 * may share a set.
 */
export interface StoreForms<C, I, O> extends Omit<OperationForms<I, O>, "one"> {
  readonly one: (context: C, input: I) => Tx<O>;
}

/** An operation of ours once it is known which clock and codec it works with: always the same one for a context. */
export type StoreOperation<C extends object, I, O> = (context: C) => Operation<I, O>;

/**
 * Defines an operation of our own. Its input is data; what it needs besides,
 * such as a clock to be read once a lock is held, comes with the context. It
 * locks what it decides by and counts on seeing what others committed before
 * it got the lock, so it is `readCommitted` by default.
 */
export function storeOperation<C extends object, I, O>(
  name: string,
  forms: StoreForms<C, I, O>,
): StoreOperation<C, I, O> {
  const made = new WeakMap<C, Operation<I, O>>();
  return (context) => {
    const known = made.get(context);
    if (known !== undefined) return known;
    const { one, ...others } = forms;
    const inContext = plainOperation<I, O>(name, {
      ...others,
      one: (input) => one(context, input),
    });
    made.set(context, inContext);
    return inContext;
  };
}

/** An operation of our own that needs no context. */
export function plainOperation<I, O>(name: string, forms: OperationForms<I, O>): Operation<I, O> {
  const made = operation(name, { isolation: "readCommitted", ...forms });
  storeOperations.add(made);
  return made;
}

/** False for what a user wrote, whose locks come in an order that we do not know. */
export function isStoreOperation(callee: object): boolean {
  return storeOperations.has(callee);
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
        `has no use for ${excerpt(given)}. There are: ${formNames.join(", ")}.`,
      );
  if (forms.many !== undefined && typeof forms.many !== "function")
    throw operationInvalid(
      name,
      "has a `many` that is no function. Write `*many(inputs) { … }`, or leave it out.",
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
      'has a set form, `many`, and so needs `isolation: "readCommitted"`: one transaction for many callers would be run again for all of them. ' +
        "Lock the rows that it decides by (`lockRow`), in `one` too.",
    );
  if (snapshotSafe === undefined) return;
  if (!Object.is(snapshotSafe, true) || isolation !== "readCommitted")
    throw operationInvalid(
      name,
      'may say `snapshotSafe: true` only together with `isolation: "readCommitted"`: serializable ones run inside serializable calls anyway.',
    );
}

/** A body that was started, if it is a generator function. @throws HoldfastError `OPERATION_INVALID` */
export function startedBody<O>(name: string, body: () => Tx<O>): Tx<O> {
  const started = body();
  if (
    typeof started?.next === "function" &&
    typeof started.throw === "function" &&
    !(Symbol.asyncIterator in started)
  )
    return started;
  throw operationInvalid(
    name,
    "has a body that is no generator function. Write `function* () { … }`: a transaction cannot await.",
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
