import type { ExecutionStatus } from "../../model/execution/status.ts";
import { spokenStanding, type Standing } from "../../model/execution/spoken-standing.ts";
import { spokenDuration } from "../../model/time/spoken.ts";
import type { CliContext } from "../context.ts";
import type { ListedRun } from "../standings.ts";
import type { Colour } from "./style.ts";
import { tableLines } from "./table.ts";

/** The colour of a status: red or yellow if it needs attention. */
export function statusColour(status: ExecutionStatus | "unserved"): Colour {
  switch (status) {
    case "completed":
      return "green";
    case "failed":
    case "parked":
    case "timedOut":
      return "red";
    case "paused":
    case "cancelling":
    case "cancelled":
    case "unserved":
      return "yellow";
    case "running":
      return "cyan";
    case "pending":
    case "scheduled":
    case "blocked":
      return "blue";
  }
}

/** The state of a run in words. */
export function standingText(context: CliContext, run: Standing): string {
  const { timeZone } = context.host;
  return spokenStanding(run, { now: context.now(), timeZone });
}

/** A table of runs, with what each is doing in words. */
export function runTable(
  context: CliContext,
  runs: readonly ListedRun[],
  nameOf: (run: ListedRun) => string = ({ id }) => id,
): string {
  const now = context.now();
  return tableLines({
    headings: ["ID", "FUNCTION", "STATUS", "CREATED", ""],
    rows: runs.map((run) => [
      nameOf(run),
      run.function,
      { text: run.standing.status, colour: statusColour(run.standing.status) },
      `${spokenDuration(now - run.createdAt)} ago`,
      {
        text: standingText(context, { ...run, ...run.standing }),
        colour: "dim",
      },
    ]),
    style: context.style,
    width: context.width,
    stacks: true,
  }).join("\n");
}
