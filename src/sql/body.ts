import { safely } from "../model/safely.ts";
import { operationInvalid, type Tx } from "./operation.ts";

/** Starts a body and checks that it is a generator. @throws HoldfastError `OPERATION_INVALID` */
export function startedBody<O>(name: string, body: () => Tx<O>): Tx<O> {
  refuseAsync(name, body);
  const started: unknown = body();
  if (isGenerator(started)) return started as Tx<O>;
  if (!isThenable(started))
    throw operationInvalid(
      name,
      "has a body that is not a generator function. Write `function* () { … }`: a transaction cannot await.",
    );
  // The refusal is the caller's answer. A later rejection has no other reader.
  started.then(nothing, nothing);
  throw asyncBody(name);
}

/** Refuses an async function without calling it. @throws HoldfastError `OPERATION_INVALID` */
export function refuseAsync(name: string, body: () => unknown): void {
  const tag = safely(() => Object.prototype.toString.call(body), "");
  if (asyncTags.has(tag)) throw asyncBody(name);
}

const asyncTags: ReadonlySet<string> = new Set([
  "[object AsyncFunction]",
  "[object AsyncGeneratorFunction]",
]);

function asyncBody(name: string): Error {
  return operationInvalid(
    name,
    "has an async function as its body, and a transaction cannot await. Write a generator function instead, `function* () { … }`, " +
      "with `yield*` before row, rows, run and prepared parts. Await everything else before the transaction.",
  );
}

const nothing = (): void => undefined;

function isGenerator(started: unknown): boolean {
  if (typeof started !== "object" || started === null) return false;
  const { next, throw: raise } = started as Partial<Generator>;
  return (
    typeof next === "function" && typeof raise === "function" && !(Symbol.asyncIterator in started)
  );
}

function isThenable(started: unknown): started is PromiseLike<unknown> {
  return (
    typeof started === "object" &&
    started !== null &&
    typeof (started as Partial<PromiseLike<unknown>>).then === "function"
  );
}
