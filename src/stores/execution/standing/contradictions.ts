import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { Database } from "../../../sql/database.ts";
import { plainOperation, row, rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { unlessUnreadable } from "../../damage.ts";
import { beingRemoved } from "../being-removed.ts";
import { readCreations, readLeft, readOn, readStories, type StoryPart } from "./read-story.ts";
import {
  reasonOf,
  sizeOf,
  standingRowColumns,
  Story,
  type Judgement,
  type StandingResponse,
  type StandingRow,
} from "./story.ts";

/**
 * Compares the rows of all executions with the fold of their logs. Executions with short logs are
 * read some hundred at a time, each time in one snapshot. A long log is read in many snapshots: it
 * only grows, and is judged with the row of the snapshot in which its end was read.
 */

/** An execution whose row contradicts its log, or whose log cannot be folded. */
export interface Suspicious {
  readonly id: ExecutionId;
  /** Undefined if the row is unreadable. */
  readonly row: StandingRow | undefined;
  readonly judgement: Exclude<Judgement, { readonly kind: "agrees" }>;
  /** A sentence without values. */
  readonly reason: string;
}

const perSnapshotDefault = 5_000;

interface StandingSlice {
  readonly rows: readonly StandingRow[];
  readonly stories: ReadonlyMap<number, Story>;
  /** A row whose log is read separately; the slice then has no other row. */
  readonly long: Omit<ReadOn, "limit"> | undefined;
}

const standingSlice = plainOperation("standingSlice", {
  key: () => "",
  *one({
    after,
    rowsMax,
    perSnapshot,
  }: {
    readonly after: number;
    readonly rowsMax: number;
    readonly perSnapshot: number;
  }): Tx<StandingSlice> {
    const found = yield* rows<StandingRow>(sql`
      SELECT ${standingRowColumns} FROM holdfast_execution WHERE key > ${after} ORDER BY key LIMIT ${rowsMax}`);
    const fitting = withinSize(found, perSnapshot);
    const [first] = found;
    if (first !== undefined && fitting.length === 0) {
      const removed = yield* beingRemoved([first]);
      if (removed(first.id)) return { rows: [first], stories: new Map(), long: undefined };
      const creations = yield* readCreations([first.key]);
      const story = new Story(first, creations.get(first.key));
      return { rows: [first], stories: new Map(), long: { row: first, story } };
    }
    const removed = yield* beingRemoved(fitting);
    const present = fitting.filter(({ id }) => !removed(id));
    return { rows: fitting, stories: yield* readStories(present), long: undefined };
  },
});

function withinSize(found: readonly StandingRow[], perSnapshot: number): readonly StandingRow[] {
  let size = 0;
  const end = found.findIndex((each) => (size += sizeOf(each)) > perSnapshot);
  return end < 0 ? found : found.slice(0, end);
}

interface ReadOn {
  readonly row: StandingRow;
  readonly story: Story;
  readonly limit: number;
}

/** The next part of a log, or undefined if the run was started anew or removed. */
const readOnSlice = plainOperation("standingReadOn", {
  key: ({ row: { id } }) => id,
  *one({
    row: before,
    story,
    limit,
  }: ReadOn): Tx<(StoryPart & { readonly row: StandingRow }) | undefined> {
    const now = yield* standingRow(before.key);
    if (now?.history_from !== before.history_from) return undefined;
    return { row: now, ...(yield* readOn(now, story, limit)) };
  },
});

/** The signal that an earlier run left to this one; undefined as above. */
const leftSlice = plainOperation("standingLeft", {
  key: ({ row: { id } }) => id,
  *one({
    row: before,
    story,
  }: Omit<ReadOn, "limit">): Tx<{ readonly left: StandingResponse | undefined } | undefined> {
    const now = yield* standingRow(before.key);
    if (now?.history_from !== before.history_from) return undefined;
    return { left: yield* readLeft(before, story) };
  },
});

const rowNames = plainOperation("standingName", {
  key: () => "",
  *one(after: number): Tx<{ readonly key: number; readonly id: ExecutionId } | undefined> {
    return yield* row<{ readonly key: number; readonly id: ExecutionId }>(sql`
      SELECT key, id FROM holdfast_execution WHERE key > ${after} ORDER BY key LIMIT 1`);
  },
});

/** A row by its key; undefined if it is missing. */
function* standingRow(key: number): Tx<StandingRow | undefined> {
  return yield* row<StandingRow>(sql`
    SELECT ${standingRowColumns} FROM holdfast_execution WHERE key = ${key}`);
}

export interface WalkOptions {
  readonly rowsPerSlice: number;
  readonly signal?: AbortSignal | undefined;
  /** The number of events and responses that one snapshot reads; defaults to 5,000. */
  readonly perSnapshot?: number;
}

/** The rows of a slice, and the ones that contradict their logs. */
export interface WalkedSlice {
  readonly rows: number;
  readonly suspicious: readonly Suspicious[];
}

/**
 * Walks over all executions, slice by slice. If a slice is unreadable, its executions are read one
 * by one; an unreadable execution is reported and skipped.
 */
export async function* suspiciousExecutions(
  database: Database,
  { rowsPerSlice, signal, perSnapshot = perSnapshotDefault }: WalkOptions,
): AsyncGenerator<WalkedSlice, void> {
  let rowsMax = rowsPerSlice;
  for (let after = Number.MIN_SAFE_INTEGER; ;) {
    const input = { after, rowsMax, perSnapshot };
    const slice = await unlessUnreadable(database.read(standingSlice, input, { signal }));
    await database.pause();
    if (slice instanceof Error) {
      if (rowsMax > 1) {
        rowsMax = 1;
        continue;
      }
      const named = await unlessUnreadable(database.read(rowNames, after, { signal }));
      if (named instanceof Error || named === undefined) return;
      yield { rows: 1, suspicious: [unreadable(named.id, slice.message)] };
      after = named.key;
      rowsMax = rowsPerSlice;
      continue;
    }
    const last = slice.rows.at(-1);
    if (last === undefined) return;
    const suspicious = slice.rows.flatMap((each) => {
      const judgement = slice.stories.get(each.key)?.judged(each);
      return judgement === undefined ? [] : suspiciousOf(each, judgement);
    });
    if (slice.long !== undefined) {
      const apart = await unlessUnreadable(
        judgedApart(database, { ...slice.long, limit: perSnapshot }, signal),
      );
      suspicious.push(...(apart instanceof Error ? [unreadable(last.id, apart.message)] : apart));
    }
    yield { rows: slice.rows.length, suspicious };
    after = last.key;
    rowsMax = rowsPerSlice;
  }
}

/**
 * Judges a log of any length. A run that was started anew in between is in use, and is left to the
 * next walk.
 */
async function judgedApart(
  database: Database,
  { row: first, story, limit }: ReadOn,
  signal: AbortSignal | undefined,
): Promise<readonly Suspicious[]> {
  for (let before = first; ;) {
    const part = await database.read(readOnSlice, { row: before, story, limit }, { signal });
    await database.pause();
    if (part === undefined) return [];
    const { row: now, events, responses } = part;
    story.add(events, responses);
    if (events.length < limit && responses.length < limit) {
      const found = await database.read(leftSlice, { row: now, story }, { signal });
      if (found === undefined) return [];
      story.addLeft(found.left);
      return suspiciousOf(now, story.judged(now));
    }
    before = now;
  }
}

function suspiciousOf(found: StandingRow, judgement: Judgement): readonly Suspicious[] {
  if (judgement.kind === "agrees") return [];
  const reason =
    judgement.kind === "unreadable" ? judgement.reason : reasonOf(judgement.contradiction, found);
  return [{ id: found.id, row: found, judgement, reason }];
}

function unreadable(id: ExecutionId, reason: string): Suspicious {
  return { id, row: undefined, judgement: { kind: "unreadable", reason, isStart: false }, reason };
}
