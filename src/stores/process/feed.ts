import type { ProcessId } from "../../model/process-id.ts";
import { optionsOf } from "../../model/shape.ts";
import { behindPlace, belowHorizon } from "../../sql/dialect.ts";
import { rows, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { cursorInvalid, cursorPlace, cursorText } from "../cursor.ts";
import { checkedLimit } from "../paging.ts";
import type { PageOptions } from "../list.ts";
import type { ProcessSurroundings } from "./context.ts";

/** Something that happened to a process. Its event has the rest. */
export interface ProcessChange {
  readonly process: ProcessId;
  readonly sequence: number;
  readonly type: string;
  readonly at: number;
}

interface FeedPlace {
  readonly tx: number;
  readonly key: number;
}

type ChangeRow = ProcessChange & FeedPlace;

interface ReadChanges {
  readonly after: FeedPlace;
  readonly limit: number;
}

/**
 * What happened to processes behind a cursor, in an order in which nothing
 * can be missed: what a slower transaction may still precede is left out.
 */
export const readChanges: Operation<ReadChanges, readonly ChangeRow[]> =
  plainOperation("readProcessChanges", {
    key: () => "",
    *one({ after, limit }) {
      return yield* rows<ChangeRow>(sql`
        SELECT e.tx, e.key, p.id AS process, e.sequence, e.type, e.at
        FROM holdfast_process_event e JOIN holdfast_process p ON p.key = e.process
        WHERE ${behindPlace(after.tx, after.key)} AND ${belowHorizon}
        ORDER BY e.tx, e.key LIMIT ${limit}`);
    },
  });

export interface ProcessChangePage {
  readonly items: readonly ProcessChange[];
  /** Where to go on, now or later. */
  readonly next: string;
}

/** All that happens to processes, in one order. */
export interface ProcessFeed {
  /**
   * What happened behind a cursor. Each event is told once, none is missed; a
   * process that was pruned is told by its last event alone.
   * @throws HoldfastError `CURSOR_INVALID`
   */
  changes(options?: PageOptions): Promise<ProcessChangePage>;
}

const feedName = "process-changes";

export function processFeed({ database }: ProcessSurroundings): ProcessFeed {
  return {
    async changes(options) {
      const { after, limit, ...wait } = optionsOf(options);
      const place = after === undefined ? { tx: 0, key: 0 } : feedPlace(after);
      const found = await database.read(
        readChanges,
        {
          after: place,
          limit: checkedLimit(limit),
        },
        wait,
      );
      const { tx, key } = found.at(-1) ?? place;
      return {
        items: found.map(({ process, sequence, type, at }) => ({
          process,
          sequence,
          type,
          at,
        })),
        next: cursorText(feedName, [tx, key]),
      };
    },
  };
}

function feedPlace(cursor: string): FeedPlace {
  const [tx, key] = cursorPlace(feedName, cursor);
  if (!Number.isSafeInteger(tx) || !Number.isSafeInteger(key))
    throw cursorInvalid("malformed");
  return { tx: tx as number, key: key as number };
}
