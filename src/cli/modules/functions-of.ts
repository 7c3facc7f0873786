import { HoldfastError } from "../../model/errors.ts";
import { isDurableFunction, type DurableFunction } from "../../runtime/definition/definitions.ts";
import type { Holdfast } from "../../runtime/client/holdfast.ts";
import { isScheduled } from "../../runtime/schedules/schedule.ts";

/** The functions of a user's module for `work`. */
export interface ModuleFunctions {
  /** Its workflows and activities. */
  readonly functions: readonly DurableFunction<never, unknown>[];
  /** Its workflows, activities and schedules. */
  readonly all: Parameters<Holdfast["work"]>[0];
}

/**
 * The workflows, activities and schedules that a module exports by name, by
 * default, or in lists. Each comes once, in the order of the exports.
 *
 * @throws HoldfastError `MODULE_WITHOUT_FUNCTIONS`
 */
export function functionsOf(
  module: Readonly<Record<string, unknown>>,
  file: string,
): ModuleFunctions {
  const exported: readonly unknown[] = Object.values(module).flat();
  const functions = [...new Set(exported.filter(isDurableFunction))];
  const schedules = [...new Set(exported.filter(isScheduled))];
  if (functions.length > 0) return { functions, all: [...functions, ...schedules] };
  const names = Object.keys(module);
  throw new HoldfastError(
    "MODULE_WITHOUT_FUNCTIONS",
    `"${file}" exports no workflow and no activity${names.length === 0 ? "" : ` (but ${names.slice(0, 5).join(", ")})`}. ` +
      `Write export before the const of each: export const greet = workflow("greet", async (ctx, name) => …);`,
    { file },
  );
}
