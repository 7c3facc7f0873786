import { HoldfastError, isHoldfastError, type ErrorCode } from "../model/errors.ts";

type Advice = (details: Readonly<Record<string, unknown>>, dbOption: string) => string;

/** What the stores say for those who call them, said for those who type: with a command instead of a call. */
const advice: Readonly<Partial<Record<ErrorCode, Advice>>> = {
  EXECUTION_UNFINISHED: ({ id }, db) =>
    `Run ${String(id)}, or something below it, has not ended, so it cannot be erased; nothing was removed. ` +
    `holdfast erase ${String(id)} --force${db} ends it first, without running its code.`,
  EXECUTION_FINISHED: ({ id }, db) =>
    `Run ${String(id)} has ended, so nothing can be added to it. holdfast show ${String(id)}${db} tells how; ` +
    `holdfast fork ${String(id)} --at <version>${db} makes a copy that goes on.`,
  NOT_FAILED: ({ id }, db) =>
    `Run ${String(id)} has not failed, so there is nothing to try again. ` +
    `holdfast fork ${String(id)} --at <version>${db} copies it up to any event that show numbers.`,
  NOT_EXTERNAL: ({ id }, db) =>
    `Run ${String(id)} is run by workers, so it cannot be resolved from outside. holdfast show ${String(id)}${db} tells what it waits for.`,
  SCHEDULE_NOT_FOUND: ({ name }, db) =>
    `There is no schedule "${String(name)}". To see those there are: holdfast schedules${db}. Workers make those that their module exports.`,
};

/** The same error with what to type next; others stay as they are. `dbOption` is that of the context. */
export function inCommands(error: unknown, dbOption: string): unknown {
  if (!isHoldfastError(error)) return error;
  const { code, details } = error;
  const said = advice[code]?.(details, dbOption);
  return said === undefined ? error : new HoldfastError(code, said, details, { cause: error });
}
