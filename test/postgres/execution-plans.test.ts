import { expect, test } from "vitest";
import { bound } from "../../src/backends/postgres/values.ts";
import type { Parameter, Statement } from "../../src/sql/statement.ts";
import {
  hotStatements,
  seedExecutions,
  usesListIndex,
} from "../fixtures/hot-paths.ts";
import { withPlace } from "./place.ts";
import type { Shell } from "./place.ts";

/** So many that the planner has no reason to read a table as a whole for a set of a hundred. */
const executions = 40_000;

/** A parameter as it is written in a statement; its type follows from the place. */
function literal(parameter: Parameter): string {
  const value = bound(parameter);
  return value === null ? "NULL" : `'${String(value).replaceAll("'", "''")}'`;
}

/** The plan of a statement for these parameters, or for any. */
async function planOf(
  shell: Shell,
  { template, parameters }: Statement,
  plan: "force_custom_plan" | "force_generic_plan",
): Promise<readonly string[]> {
  await shell.unsafe(`SET plan_cache_mode = ${plan}`);
  await shell.unsafe(`PREPARE explained AS ${template.postgres}`);
  const given = parameters.map(literal).join(", ");
  const found = await shell.unsafe(
    `EXPLAIN EXECUTE explained${given === "" ? "" : `(${given})`}`,
  );
  await shell.unsafe("DEALLOCATE explained");
  return found.map((step) => String(Object.values(step)[0]));
}

function isFault(step: string): boolean {
  return (
    /Seq Scan on holdfast_execution(?!_limit\b)/.test(step) ||
    usesListIndex(step) ||
    // One of these after the execution leads to a single row; a filter would read all of its rows.
    /Filter:.*\b(source|seq|ordinal)\b/.test(step)
  );
}

test("no hot path of the execution log walks over what does not concern it", () =>
  withPlace(async (place) => {
    const database = await place.open();
    await database.write("seed", () => seedExecutions(executions));
    const shell = place.shell();
    await shell.unsafe("ANALYZE");
    const statements = await hotStatements(database);
    const faults: string[] = [];
    for (const statement of statements)
      for (const plan of ["force_custom_plan", "force_generic_plan"] as const)
        for (const step of await planOf(shell, statement, plan))
          if (isFault(step))
            faults.push(
              `${plan} ${step.trim()}: ${statement.template.postgres}`,
            );
    expect(faults).toEqual([]);
    // So many are recorded: fewer would mean that the driver above does less.
    expect(statements.length).toBeGreaterThan(45);
  }));
