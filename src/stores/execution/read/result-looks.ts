import { lineOf, type ExecutionId } from "../../../model/ids/execution-id.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { rows, storeOperation, type StoreOperation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionContext } from "../context.ts";
import { readResult } from "./read.ts";

/** So many results, each at most so large, are read at once: a megabyte. */
const idsMax = 256;
const smallMax = 4_096;

interface Ending {
  readonly id: ExecutionId;
  readonly state: string;
  /** Null when it has not ended, or the result is large. */
  readonly result: Encoded | null;
}

/** Which of some executions that have no parent have ended, and their results when they are small. */
const readEndings: StoreOperation<ExecutionContext, readonly ExecutionId[], readonly Ending[]> =
  storeOperation("readEndings", {
    key: () => "endings",
    *one(_: ExecutionContext, ids) {
      return yield* rows<Ending>(sql`
      SELECT x.id, x.state, CASE WHEN octet_length(e.payload) <= ${smallMax} THEN e.payload END AS result
      FROM holdfast_execution x
        LEFT JOIN holdfast_execution_event e
          ON x.state = 'finished' AND e.execution = x.key AND e.version = x.version AND e.kind = 'finished'
      WHERE x.id IN ${textsOf(ids)} AND x.removing_at IS NULL`);
    },
  });

/**
 * Looks whether executions have ended, for any number of waits. What is asked
 * for in the same moment is one read, since a program that starts 200 runs and
 * awaits them would make 400. Whatever is not plainly there or not there yet (a
 * large result, a child, a row that is missing or damaged) is read alone, which
 * also decides the error.
 */
export class ResultLooks {
  readonly #context: ExecutionContext;
  #asked = new Set<ExecutionId>();
  #reading: Promise<ReadonlyMap<ExecutionId, Ending>> | undefined;

  constructor(context: ExecutionContext) {
    this.#context = context;
  }

  /** The result, or undefined when it has not ended. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW` */
  async look(id: ExecutionId): Promise<Encoded | undefined> {
    // Whether a child is there depends on those above it.
    if (lineOf(id).length === 1) {
      this.#asked.add(id);
      this.#reading ??= this.#readTogether();
      const found = (await this.#reading).get(id);
      if (found !== undefined && found.state !== "finished") return undefined;
      if (typeof found?.result === "string") return found.result;
    }
    const { database } = this.#context;
    return (await database.read(readResult(this.#context), id))?.result;
  }

  async #readTogether(): Promise<ReadonlyMap<ExecutionId, Ending>> {
    // Others that were woken with this one are about to ask.
    await Promise.resolve();
    const ids = [...this.#asked];
    this.#asked = new Set();
    this.#reading = undefined;
    if (ids.length === 1) return new Map();
    const { database } = this.#context;
    const pages: Promise<readonly Ending[]>[] = [];
    for (let from = 0; from < ids.length; from += idsMax)
      pages.push(database.read(readEndings(this.#context), ids.slice(from, from + idsMax)));
    const found = (await Promise.all(pages)).flat();
    return new Map(found.map((ending) => [ending.id, ending]));
  }
}
