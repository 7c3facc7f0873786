import { bound } from "../../src/backends/postgres/values.ts";
import type { Parameter, Statement } from "../../src/sql/statement.ts";
import type { Shell } from "./place.ts";

/** A statement is planned for its parameters at first, and for any later on. */
export const plans = ["force_custom_plan", "force_generic_plan"] as const;

/** A parameter as it is written in a statement; its type follows from the place. */
function literal(parameter: Parameter): string {
  const value = bound(parameter);
  return value === null ? "NULL" : `'${String(value).replaceAll("'", "''")}'`;
}

/** The plan of a statement for these parameters, or for any. */
export async function planOf(
  shell: Shell,
  { template, parameters }: Statement,
  plan: (typeof plans)[number],
): Promise<readonly string[]> {
  await shell.unsafe(`SET plan_cache_mode = ${plan}`);
  await shell.unsafe(`PREPARE explained AS ${template.postgres}`);
  const given = parameters.map(literal).join(", ");
  const found = await shell.unsafe(`EXPLAIN EXECUTE explained${given === "" ? "" : `(${given})`}`);
  await shell.unsafe("DEALLOCATE explained");
  return found.map((step) => String(Object.values(step)[0]));
}
