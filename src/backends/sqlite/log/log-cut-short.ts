import type { Warning } from "../../../sql/database.ts";
import type { LogCut } from "./log-file.js";

/** What checkpoint-thread.js found in a log, and where it kept a copy of it. */
export interface InspectedCut extends LogCut {
  readonly copy: string;
  /** Why there is no copy. */
  readonly notKept?: string;
}

export function logCutShort(path: string, cut: InspectedCut): Warning {
  const { bad, commits, frames, copy, notKept } = cut;
  const kept =
    notKept === undefined
      ? `The log as it was is kept in "${copy}"; remove it when it is not needed.`
      : notKept === "EEXIST"
        ? `An earlier log is kept in "${copy}" already, so this one was not; move it away to keep the next.`
        : `It could not be kept in "${copy}" (${notKept}).`;
  return {
    code: "LOG_CUT_SHORT",
    message:
      `The write-ahead log of "${path}" is damaged at frame ${bad}: behind it lie ${commits} whole transactions (${frames} frames from the last good one on), which SQLite does not reach. ` +
      "After a power cut they may be writes that nobody was told of; otherwise acknowledged facts may be lost by a fault of the disk. " +
      `Compare the data with a backup. ${kept}`,
  };
}
