import { expect, test } from "vitest";
import type { FunctionName } from "../../src/executions.ts";
import type { Statement } from "../../src/kernel.ts";
import { hotStatements, seedExecutions, usesListIndex } from "../fixtures/hot-paths.ts";
import { finishedTrees } from "../fixtures/execution-operations.ts";
import { withNewPlace } from "./place.ts";
import { planOf, plans } from "./plans.ts";

/** So many that the planner has no reason to read a table as a whole for a set of a hundred. */
const executions = 40_000;

function isFault(step: string): boolean {
  return (
    /Seq Scan on holdfast_execution(?!_limit\b)/.test(step) ||
    usesListIndex(step) ||
    // One of these after the execution leads to a single row; a filter would read all of its rows.
    /Filter:.*\b(source|seq|ordinal)\b/.test(step)
  );
}

test("no hot path of the execution log walks over what does not concern it", () =>
  withNewPlace(async (place) => {
    const database = await place.open();
    await database.write("seed", () => seedExecutions(executions));
    const shell = place.shell();
    await shell.unsafe("ANALYZE");
    const statements = await hotStatements(database);
    const faults: string[] = [];
    for (const statement of statements)
      for (const plan of plans)
        for (const step of await planOf(shell, statement, plan))
          if (isFault(step)) faults.push(`${plan} ${step.trim()}: ${statement.template.postgres}`);
    expect(faults).toEqual([]);
    // So many are recorded: fewer would mean that the driver above does less.
    expect(statements.length).toBeGreaterThan(45);
    const old = finishedTrees
      .one({
        function: "fn5" as FunctionName,
        after: { finishedAt: 3, id: "a" },
        // Far more than a page of them: the planner may sort a few.
        upTo: { finishedAt: 39_000, id: "b" },
        limit: 100,
      })
      .next().value as { readonly statement: Statement };
    for (const plan of plans) {
      const steps = (await planOf(shell, old.statement, plan)).join("\n");
      expect(steps).toContain("using holdfast_execution_retention");
      expect(steps).not.toContain("Sort");
    }
  }));
