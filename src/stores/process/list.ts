import { HoldfastError } from "../../model/errors.ts";
import { excerpt } from "../../model/excerpt.ts";
import type { ProcessStatus, ProcessSummary } from "../../model/process.ts";
import { checkedFilterText } from "../../model/shape.ts";
import { rows, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";
import { sift } from "../damage.ts";
import type { Damaged } from "../damage.ts";
import { summaryColumns, summaryOf } from "./process-row.ts";
import type { SummaryRow } from "./process-row.ts";

/** Which processes a list shows. */
export interface ProcessFilter {
  /** `running` unless told. */
  readonly status?: ProcessStatus | "any";
  /** Only those that wait for a signal, or only those that do not. */
  readonly waiting?: boolean;
  readonly definition?: string;
  readonly kind?: string;
  /** Only those that no session has a handle of, or only those that one has. */
  readonly orphaned?: boolean;
}

export interface ListProcesses {
  readonly filter: ProcessFilter;
  /** The last id of the page before. */
  readonly after: string;
  readonly limit: number;
}

export interface StoredProcessPage {
  readonly items: readonly ProcessSummary[];
  readonly damaged: readonly Damaged[];
  /** The id to go on after; undefined at the end. */
  readonly next: string | undefined;
}

/** Processes in the order of their ids. */
export const listProcesses: Operation<ListProcesses, StoredProcessPage> =
  plainOperation("listProcesses", {
    key: () => "",
    *one({ filter, after, limit }) {
      const found = yield* rows<SummaryRow>(sql`
        SELECT ${summaryColumns} FROM holdfast_process p
        WHERE p.id > ${after} ${conditionOf(filter)} ORDER BY p.id LIMIT ${limit + 1}`);
      const page = found.slice(0, limit);
      return {
        ...sifted(page),
        next: found.length > limit ? page.at(-1)?.id : undefined,
      };
    },
  });

function sifted(found: readonly SummaryRow[]): Omit<StoredProcessPage, "next"> {
  return sift("holdfast_process", found, ({ id }) => id, summaryOf);
}

const everything: Statement = sql``;

function conditionOf(filter: ProcessFilter): Statement {
  const { status = "running", waiting, definition, kind, orphaned } = filter;
  const grants = sql`SELECT 1 FROM holdfast_process_grant g WHERE g.process = p.key`;
  const conditions = [
    status === "any" ? everything : sql`AND p.status = ${status}`,
    waiting === undefined
      ? everything
      : waiting
        ? // Only what runs waits: said again, since the index is of those.
          sql`AND p.status = 'running' AND p.wait IS NOT NULL`
        : sql`AND p.wait IS NULL`,
    definition === undefined
      ? everything
      : sql`AND p.definition = ${definition}`,
    kind === undefined ? everything : sql`AND p.kind = ${kind}`,
    orphaned === undefined
      ? everything
      : orphaned
        ? sql`AND NOT EXISTS (${grants})`
        : sql`AND EXISTS (${grants})`,
  ];
  return conditions.reduce((left, right) => sql`${left} ${right}`);
}

const statuses: ReadonlySet<unknown> = new Set<ProcessStatus | "any">([
  "running",
  "completed",
  "failed",
  "cancelled",
  "abandoned",
  "any",
]);
const flags: ReadonlySet<string> = new Set(["waiting", "orphaned"]);
const texts: ReadonlySet<string> = new Set(["definition", "kind"]);

/** A filter as a caller gave it. What we do not know is refused, since it would filter nothing. @throws HoldfastError `OPTION_INVALID` */
export function checkedFilter(given: ProcessFilter): ProcessFilter {
  for (const [option, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (option === "status" && statuses.has(value)) continue;
    if (flags.has(option) && typeof value === "boolean") continue;
    if (texts.has(option)) checkedFilterText(option, value as string);
    else throw filterInvalid(option);
  }
  return given;
}

function filterInvalid(option: string): HoldfastError {
  const why =
    option === "status"
      ? `status is one of ${[...statuses].join(", ")}; got something else.`
      : flags.has(option)
        ? `Option ${option} is true or false; got something else.`
        : `There is no option ${excerpt(option)}. There are: status, waiting, definition, kind, orphaned, after, limit, signal, timeout.`;
  return new HoldfastError("OPTION_INVALID", why, { option });
}
