import type { FunctionName } from "../../../model/function-name.ts";
import { textRows } from "../../../sql/dialect.ts";
import {
  plainOperation,
  rows,
  type Operation,
} from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";

/**
 * When there is something to do. Every question is a lookup at the front of an
 * index, whatever the number of executions that sleep behind it.
 */

export interface EarliestDue {
  /** Of all functions asked for; undefined when none has anything pending. */
  readonly earliest: number | undefined;
  /** Functions without anything pending are missing. */
  readonly byFunction: ReadonlyMap<FunctionName, number>;
}

interface OfFunctions {
  readonly functions: readonly FunctionName[];
}

/** When the next execution of each function can be locked, as far as its time goes. */
export const earliestDue: Operation<OfFunctions, EarliestDue> = plainOperation(
  "earliestDue",
  {
    key: (input: OfFunctions) => input.functions[0] ?? "",
    *one({ functions }) {
      const found = yield* rows<{
        readonly name: FunctionName;
        readonly due_at: number | null;
      }>(sql`
        SELECT asked.value AS name,
          (SELECT due_at FROM holdfast_execution
           WHERE function = asked.value AND state = 'pending' AND lifecycle = 'active'
           ORDER BY due_at, id LIMIT 1) AS due_at
        FROM ${textRows(functions)} AS asked`);
      const byFunction = new Map<FunctionName, number>();
      for (const { name, due_at: dueAt } of found)
        if (dueAt !== null) byFunction.set(name, dueAt);
      const earliest =
        byFunction.size === 0 ? undefined : Math.min(...byFunction.values());
      return { earliest, byFunction };
    },
  },
);
