import { rollbackWith } from "../../../src/sql/operation.ts";
import type { Operation, Request, Tx } from "../../../src/sql/operation.ts";
import type { Database, WriteOptions } from "../../../src/sql/database.ts";

/** Counts the statements of a call that have changed rows, in writes that ended well. */
export interface Watch {
  changes: number;
}

/** That of the call which is being made: others may still wait for something. */
export type CurrentWatch = () => Watch | undefined;

type Write = (
  callee: string | Operation<unknown, unknown>,
  input: unknown,
  options?: WriteOptions,
) => Promise<unknown>;

/** The same database, whose changes are counted. */
export function watched(database: Database, watch: CurrentWatch): Database {
  return withWrites(database, watch, false);
}

/** The same, and every write is undone: it answers as if it had been committed, and each call finds the same rows. */
export function undone(database: Database, watch: CurrentWatch): Database {
  return withWrites(database, watch, true);
}

function withWrites(database: Database, watch: CurrentWatch, isUndone: boolean): Database {
  const write: Write = async (callee, input, options) => {
    const current = watch();
    let changes = 0;
    const isBody = typeof callee === "string";
    const body = function* (): Tx<{ readonly answer: unknown }> {
      changes = 0;
      const part = isBody ? (input as () => Tx<unknown>)() : callee(input);
      const answer = yield* counted(part, () => (changes += 1));
      return isUndone ? yield* rollbackWith({ answer }) : { answer };
    };
    const isolation = isBody ? undefined : callee.isolation;
    const { answer } = await database.write(isBody ? callee : callee.name, body, {
      ...(isolation && { isolation }),
      ...options,
    });
    if (current !== undefined) current.changes += changes;
    return answer;
  };
  return new Proxy(database, {
    get(target, name) {
      if (name === "write") return write;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function"
        ? (value as (...given: unknown[]) => unknown).bind(target)
        : value;
    },
  });
}

/** Drives a part, and tells of each statement that has changed something. */
function* counted(part: Tx<unknown>, changed: () => void): Tx<unknown> {
  let step = part.next();
  while (step.done !== true) {
    let answer: unknown;
    try {
      answer = yield step.value;
    } catch (error) {
      step = part.throw(error);
      continue;
    }
    if (isChange(step.value, answer)) changed();
    step = part.next(answer);
  }
  return step.value;
}

function isChange({ want, statement }: Request, answer: unknown): boolean {
  if (statement === undefined || !statement.template.writes) return false;
  if (want === "run") return (answer as number) > 0;
  return Array.isArray(answer) ? answer.length > 0 : answer !== undefined;
}
