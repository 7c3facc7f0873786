import type { Warning } from "../../../sql/database.ts";
import type { LogCut } from "./log-file.js";

/** The damage that checkpoint-thread.js found in a log, and the place of its copy. */
export interface InspectedCut extends LogCut {
  readonly copy: string;
  /** The reason why there is no copy. */
  readonly notKept?: string;
}

export function logCutShort(path: string, cut: InspectedCut): Warning {
  const { bad, commits, frames, copy, notKept } = cut;
  const kept =
    notKept === undefined
      ? `A copy of the log is kept in "${copy}"; delete it when you no longer need it.`
      : notKept === "EEXIST"
        ? `"${copy}" already holds a copy of an earlier log, so this one was not copied; move that file away to keep the next.`
        : `It could not be kept in "${copy}" (${notKept}).`;
  return {
    code: "LOG_CUT_SHORT",
    message:
      `The write-ahead log of "${path}" is damaged at frame ${bad}: behind it lie ${commits} whole transactions (${frames} frames from the last good one on), which SQLite does not reach. ` +
      "After a power cut they may be writes that were never acknowledged; otherwise acknowledged writes may be lost because of a disk fault. " +
      `Compare the data with a backup. ${kept}`,
  };
}
