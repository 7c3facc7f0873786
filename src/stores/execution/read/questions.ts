import { askedIn } from "../../../model/execution/question.ts";
import type { Created } from "../../../model/execution/event.ts";
import type { Metadata } from "../../../model/execution/metadata.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import type { JsonSchema } from "../../../model/json-schema/json-schema.ts";
import { checkedCount, checkedFilterText } from "../../../model/shape.ts";
import { instantOfDate } from "../../../model/time/instants.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { list, pageBytesMax, pageOf, rowsWithin, type List, type PageOptions } from "../../list.ts";
import type { Slice, SliceBounds } from "../../list.ts";
import type { ExecutionContext } from "../context.ts";
import {
  eventColumns,
  eventOf,
  sizedEventColumns,
  type EventRow,
  type SizedEventRow,
} from "../event-row.ts";
import { corruptLog } from "../state-row.ts";
import type { ExecutionFilter } from "./list-filter.ts";
import { choosePath } from "./list-path.ts";
import { foundAlong, placeOf } from "./list.ts";
import type { SummaryRow } from "./summary.ts";

/** The filters of a list of questions; a question must match all of them. */
export interface ListQuestionsOptions extends PageOptions {
  /** Only questions of runs of this function. */
  readonly function?: string;
  /** Only questions of this run, and of the runs below it. */
  readonly run?: string;
  /** Only questions that were asked with this tag. */
  readonly tag?: string;
  /** Exclusive; a Date, or milliseconds since 1970. */
  readonly askedBefore?: Date | number;
}

/** An open question. */
export interface Question {
  readonly kind: "question";
  /** The id to answer. */
  readonly id: ExecutionId;
  /** The run that asks; null for an external execution without one. */
  readonly run: ExecutionId | null;
  /** The function of that run. */
  readonly function: FunctionName;
  /** The question itself, as the code put it. */
  readonly about: unknown;
  /** The JSON Schema of an answer; undefined when any value answers. */
  readonly schema: JsonSchema | undefined;
  readonly tags: readonly string[];
  readonly metadata: Metadata;
  readonly askedAt: number;
  /** The instant of its timeout; null when it stays open until the run ends. */
  readonly expiresAt: number | null;
}

/** A row with the event that holds the question, and with the run that asks. */
interface AskedRow extends SummaryRow {
  readonly asked: EventRow | undefined;
  readonly asker: AskerRow | undefined;
}

interface AskerRow {
  readonly key: number;
  readonly id: ExecutionId;
  readonly function: FunctionName;
}

/**
 * Open questions of all runs, newest first.
 * @throws HoldfastError `OPTION_INVALID`, `CURSOR_INVALID`
 */
export const questionList: List<ExecutionContext, [options?: ListQuestionsOptions], Question> =
  list("listQuestions", {
    table: "holdfast_execution",
    given(_: ExecutionContext, options?: ListQuestionsOptions) {
      const { filter, page } = pageOf(options, ["function", "run", "tag", "askedBefore"]);
      return { filter: questionFilter(filter), page };
    },
    slice: questionSlice,
    keyOf: ({ id }: AskedRow) => id,
    itemOf: questionOf,
  });

function questionFilter(given: ListQuestionsOptions): ExecutionFilter {
  const text = (name: "function" | "run" | "tag"): string | undefined => {
    const value = given[name];
    return value === undefined ? undefined : checkedFilterText(name, value);
  };
  const { askedBefore } = given;
  const run = text("run");
  return {
    openQuestions: true,
    parentFunction: text("function"),
    // Trees are ranges of ids.
    idPrefix: run === undefined ? undefined : `${run}.`,
    tag: text("tag"),
    createdTo:
      askedBefore === undefined
        ? undefined
        : checkedCount("askedBefore", instantOfDate("askedBefore", askedBefore)),
  };
}

function* questionSlice(
  { clock }: ExecutionContext,
  filter: ExecutionFilter,
  bounds: SliceBounds,
): Tx<Slice<AskedRow>> {
  const now = clock.now();
  const path = yield* choosePath(filter, undefined, now);
  const { rows: found, next, looked } = yield* foundAlong(path, filter, now, bounds);
  const kept = yield* withQuestions(found);
  const isCut = kept.length < found.length;
  return {
    rows: kept,
    next: isCut ? placeOf(kept.at(-1)) : next,
    looked: isCut ? undefined : looked,
  };
}

/** Rows in order with their questions, as long as those fit into a page: at least one. */
function* withQuestions(found: readonly SummaryRow[]): Tx<readonly AskedRow[]> {
  if (found.length === 0) return [];
  const smallMax = Math.floor(pageBytesMax / found.length);
  const sized = yield* createdOf<SizedEventRow>(found, sizedEventColumns(smallMax));
  const sizes = found.map(({ key }) => sized.get(key)?.bytes ?? 0);
  const fitting = found.slice(0, rowsWithin(sizes, pageBytesMax));
  const large = fitting.filter(({ key }) => sized.get(key)?.body === null);
  const whole = large.length === 0 ? undefined : yield* createdOf<EventRow>(large, eventColumns);
  const askers = yield* askersOf(fitting);
  return fitting.map((row) => ({
    ...row,
    asked: whole?.get(row.key) ?? (sized.get(row.key) as EventRow | undefined),
    asker: askers.get(row.key),
  }));
}

function* createdOf<E>(
  found: readonly SummaryRow[],
  columns: typeof eventColumns,
): Tx<ReadonlyMap<number, E>> {
  const keys = integersOf(found.map(({ key }) => key));
  const events = yield* rows<E & { readonly execution: number }>(sql`
    SELECT execution, ${columns} FROM holdfast_execution_event
    WHERE execution IN ${keys} AND version = 0`);
  return new Map(events.map((event) => [event.execution, event]));
}

function* askersOf(found: readonly SummaryRow[]): Tx<ReadonlyMap<number, AskerRow>> {
  const keys = integersOf(found.map(({ key }) => key));
  const askers = yield* rows<AskerRow>(sql`
    SELECT x.key AS key, p.id AS id, p.function AS function
    FROM holdfast_execution AS x CROSS JOIN holdfast_execution AS p
    WHERE x.key IN ${keys} AND p.key = x.parent`);
  return new Map(askers.map((asker) => [asker.key, asker]));
}

/** @throws HoldfastError `CORRUPT_ROW` when its creation cannot be read. */
function questionOf({ values }: ExecutionContext, found: AskedRow): Question {
  const { id, function: name, asked, asker, created_at: askedAt, deadline_at: expiresAt } = found;
  const event = asked && eventOf(asked).event;
  if (event?.kind !== "created") throw corruptLog(id, 0);
  const { input, tags, metadata }: Created = event;
  const { about, schema } = askedIn(name, values.readValue(input));
  return {
    kind: "question",
    id,
    run: asker?.id ?? null,
    function: asker?.function ?? name,
    about,
    schema,
    tags,
    metadata,
    askedAt,
    expiresAt,
  };
}
