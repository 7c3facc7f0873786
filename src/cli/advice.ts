import { HoldfastError, isHoldfastError, type ErrorCode } from "../model/errors.ts";

type Advice = (details: Readonly<Record<string, unknown>>, dbOption: string) => string;

/** Messages of the stores, reworded for the command line: with a command instead of a call. */
const advice: Readonly<Partial<Record<ErrorCode, Advice>>> = {
  EXECUTION_UNFINISHED: ({ id }, db) =>
    `Run ${String(id)} or one of its children has not ended, so it cannot be erased. Nothing was removed. ` +
    `To end it first, without running its code: npx holdfast erase ${String(id)} --force${db}`,
  EXECUTION_FINISHED: ({ id }, db) =>
    `Run ${String(id)} has ended, so nothing can be added to it. To see its outcome: npx holdfast show ${String(id)}${db}. ` +
    `To make a copy that continues: npx holdfast fork ${String(id)} --at <version>${db}`,
  NOT_FAILED: ({ id }, db) =>
    `Run ${String(id)} has not failed, so there is nothing to retry. ` +
    `To copy it up to an event that show prints: npx holdfast fork ${String(id)} --at <version>${db}`,
  NOT_EXTERNAL: ({ id }, db) =>
    `Workers execute run ${String(id)}, so it takes no answer. To see what it waits for: npx holdfast show ${String(id)}${db}`,
  SCHEDULE_NOT_FOUND: ({ name }, db) =>
    `Unknown schedule "${String(name)}". A worker creates the schedules that its module exports. To list all schedules: npx holdfast schedules${db}`,
};

/** The same error with the next command to type; other errors stay unchanged. `dbOption` is that of the context. */
export function inCommands(error: unknown, dbOption: string): unknown {
  if (!isHoldfastError(error)) return error;
  const { code, details } = error;
  const said = advice[code]?.(details, dbOption);
  return said === undefined ? error : new HoldfastError(code, said, details, { cause: error });
}
