import type { Operation, Tx } from "../../../src/sql/operation.ts";
import type { Database, WriteOptions } from "../../../src/sql/database.ts";

/** How many bytes of texts and blobs the statements of the latest call have answered. */
export interface Scale {
  bytes: number;
}

type Call = (
  callee: string | Operation<unknown, unknown>,
  input: unknown,
  options?: WriteOptions,
) => Promise<unknown>;

/** The same database, which weighs what is read from it: of a body that is run again the last run. */
export function weighed(database: Database, scale: Scale): Database {
  const call =
    (kind: "read" | "write"): Call =>
    (callee, input, options) => {
      const isBody = typeof callee === "string";
      const body = function* (): Tx<unknown> {
        scale.bytes = 0;
        const part = isBody ? (input as () => Tx<unknown>)() : callee(input);
        return yield* weighing(part, scale);
      };
      const isolation = isBody || kind === "read" ? undefined : callee.isolation;
      return database[kind](isBody ? callee : callee.name, body, {
        ...(isolation && { isolation }),
        ...options,
      });
    };
  return new Proxy(database, {
    get(target, name) {
      if (name === "read" || name === "write") return call(name);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function"
        ? (value as (...given: unknown[]) => unknown).bind(target)
        : value;
    },
  });
}

function* weighing(part: Tx<unknown>, scale: Scale): Tx<unknown> {
  let step = part.next();
  while (step.done !== true) {
    let answer: unknown;
    try {
      answer = yield step.value;
    } catch (error) {
      step = part.throw(error);
      continue;
    }
    scale.bytes += bytesIn(answer);
    step = part.next(answer);
  }
  return step.value;
}

function bytesIn(answer: unknown): number {
  if (typeof answer === "string") return Buffer.byteLength(answer);
  if (answer instanceof Uint8Array) return answer.length;
  if (typeof answer !== "object" || answer === null) return 0;
  return Object.values(answer).reduce((sum: number, value) => sum + bytesIn(value), 0);
}
