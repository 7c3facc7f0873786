import { lineOf, type ExecutionId } from "../../../model/ids/execution-id.ts";
import type { ResultKind } from "../../../model/execution/event.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionContext } from "../context.ts";
import { endIn } from "../event-row.ts";
import type { FinishedResult } from "../result-row.ts";
import { readResult } from "./read.ts";

/** The number of results that are read at once, each up to a maximum size: a megabyte in all. */
const idsMax = 256;
const smallMax = 4_096;

interface Ending {
  readonly id: ExecutionId;
  readonly state: string;
  readonly version: number;
  readonly result_kind: ResultKind | null;
  /** Null if it has not finished, or the result is large. */
  readonly result: Encoded | null;
  readonly body: string | null;
}

/** A result in its stored form, with its hash and its place in the log. */
type EndedResult = Omit<FinishedResult, "finishedAt">;

/** Reads which of some executions without a parent have finished, with their small results. */
const readEndings = storeOperation("readEndings", {
  key: () => "endings",
  *one(_: ExecutionContext, ids: readonly ExecutionId[]): Tx<readonly Ending[]> {
    return yield* rows<Ending>(sql`
      SELECT x.id, x.state, x.version, x.result_kind, e.body,
        CASE WHEN octet_length(e.payload) <= ${smallMax} THEN e.payload END AS result
      FROM holdfast_execution x
        LEFT JOIN holdfast_execution_event e
          ON x.state = 'finished' AND e.execution = x.key AND e.version = x.version AND e.kind = 'finished'
      WHERE x.id IN ${textsOf(ids)} AND x.removing_at IS NULL`);
  },
});

/**
 * Checks whether executions have finished, for any number of waits. Requests made at the same
 * moment share one read, since a program that starts 200 runs and awaits them would otherwise make
 * 400. Only simple cases are shared. A large result, a child, or a missing or damaged row is read
 * separately, which also decides the error.
 */
export class ResultLooks {
  readonly #context: ExecutionContext;
  #asked = new Set<ExecutionId>();
  #reading: Promise<ReadonlyMap<ExecutionId, Ending>> | undefined;

  constructor(context: ExecutionContext) {
    this.#context = context;
  }

  /** The result, or undefined while it has not finished. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW` */
  async look(id: ExecutionId): Promise<EndedResult | undefined> {
    // A child is present only if its ancestors are.
    if (lineOf(id).length === 1) {
      this.#asked.add(id);
      this.#reading ??= this.#readTogether();
      const found = (await this.#reading).get(id);
      if (found !== undefined && found.state !== "finished") return undefined;
      const ended = found && endedResult(found);
      if (ended !== undefined) return ended;
    }
    const { database } = this.#context;
    return await database.read(readResult(this.#context), id);
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

function endedResult(found: Ending): EndedResult | undefined {
  const { version, result, body, result_kind: resultKind } = found;
  if (result === null || resultKind === null) return undefined;
  return { version, resultKind, result, ...endIn(body) };
}
