import { after, monotonicMs } from "../../host/timers.ts";
import type { Holdfast } from "../../runtime/client/holdfast.ts";
import type { ExecutionSummary } from "../../stores/execution/read/summary.ts";
import { openAsks } from "../../runtime/client/open-asks.ts";
import { isDueBy, patienceMs, unservedOf } from "../standings.ts";
import { rowOf, tellingKinds, type RunDetails, type RunRow } from "./run-row.ts";

/** The runs of a database at one instant: first the open ones, then the newest finished ones. */
export interface RunsView {
  readonly rows: readonly RunRow[];
  /** The number of runs beyond the rows. */
  readonly hidden: number;
  /** True if there are even more, which are not counted at every change. */
  readonly isHiddenMore: boolean;
}

export interface WatchOptions {
  /** The time zone of printed instants. */
  readonly timeZone: string;
  /** The wanted number of rows, computed at each read, since terminals change their size. */
  readonly rowsMax: () => number;
  readonly onView: (view: RunsView) => void;
  /** Called when a read fails; it is retried at the next change, or after a second. */
  readonly onError: (error: unknown) => void;
}

/** The shortest pause between two reads in milliseconds; it is also several times the length of a read. */
const pauseMsMin = 100;
const pauseMsMax = 500;
const pausePerRead = 5;
const countedMax = 1_000;
const retryMs = 1_000;

/**
 * Reads the runs whenever the database reports a change, never by the clock: a
 * view of an idle database costs nothing. Returns a function that stops, after
 * a last read.
 */
export function watchRuns(
  holdfast: Pick<Holdfast, "database" | "executions">,
  options: WatchOptions,
): () => Promise<void> {
  const reader = new RunsReader(holdfast, options);
  let isStopped = false;
  let isChanged = true;
  let reading: Promise<void> | undefined;
  let cancelNext = (): void => undefined;

  const wake = (): void => {
    isChanged = true;
    if (reading === undefined && !isStopped) reading = read();
  };
  const read = async (): Promise<void> => {
    isChanged = false;
    const startedMs = monotonicMs();
    let restMs: number;
    try {
      const view = await reader.read();
      if (!isStopped) options.onView(view);
      const tookMs = monotonicMs() - startedMs;
      restMs = Math.min(pauseMsMax, Math.max(pauseMsMin, pausePerRead * tookMs));
    } catch (error) {
      if (!isStopped) options.onError(error);
      isChanged = true;
      restMs = retryMs;
    }
    if (isStopped) return;
    cancelNext = after(restMs, () => {
      reading = undefined;
      if (isChanged) wake();
    });
  };

  const unsubscribe = holdfast.database.subscribe((hint) => {
    if (hint.kind !== "closing") wake();
  });
  wake();
  return async () => {
    isStopped = true;
    unsubscribe();
    cancelNext();
    await reading;
    // A last read shows changes since the previous one.
    await reader.read().then(options.onView, options.onError);
  };
}

/** Reads details only of runs that have changed. */
class RunsReader {
  readonly #holdfast: Pick<Holdfast, "database" | "executions">;
  readonly #options: WatchOptions;
  #known = new Map<string, Known>();

  constructor(holdfast: Pick<Holdfast, "database" | "executions">, options: WatchOptions) {
    this.#holdfast = holdfast;
    this.#options = options;
  }

  async read(): Promise<RunsView> {
    const { executions, database } = this.#holdfast;
    const rowsMax = Math.max(1, this.#options.rowsMax());
    const open = await executions.list({
      topLevelOnly: true,
      hideFinished: true,
      limit: countedMax,
    });
    const ended = await executions.list({
      topLevelOnly: true,
      status: "finished",
      limit: countedMax,
    });
    // A run that ended between the two reads is in both.
    const isEnded = new Set(ended.items.map(({ id }) => id));
    const all = [...open.items.filter(({ id }) => !isEnded.has(id)), ...ended.items];
    const shown = all.slice(0, rowsMax);
    const details = await this.#detailsOf(shown);
    const moment = {
      now: database.clock.now(),
      timeZone: this.#options.timeZone,
    };
    const dueBy = moment.now - patienceMs;
    const unserved = await unservedOf(this.#holdfast, shown, dueBy);
    return {
      rows: shown.map((summary, index) =>
        rowOf(
          summary,
          details[index] ?? nothingKnown,
          moment,
          isDueBy(summary, dueBy) && unserved.has(summary.function),
        ),
      ),
      hidden: all.length - shown.length,
      isHiddenMore: open.next !== undefined || ended.next !== undefined,
    };
  }

  async #detailsOf(shown: readonly ExecutionSummary[]): Promise<readonly RunDetails[]> {
    const known = this.#known;
    this.#known = new Map();
    return Promise.all(
      shown.map(async (summary) => {
        const { id } = summary;
        const { status, state } = summary;
        const { version, responses } = state;
        const before = known.get(id);
        // Progress changes without an event, but only while a run executes.
        const isSame =
          before?.version === version &&
          before.responses === responses &&
          before.status === status &&
          status !== "running";
        const details = isSame ? before.details : await this.#read(summary);
        this.#known.set(id, { version, responses, status, details });
        return details;
      }),
    );
  }

  async #read(summary: ExecutionSummary): Promise<RunDetails> {
    const { executions, database } = this.#holdfast;
    const { id } = summary;
    try {
      switch (summary.status) {
        case "completed":
          return nothingKnown;
        case "failed":
        case "cancelled":
        case "timedOut":
          return { ...nothingKnown, result: await executions.result(id) };
        case "blocked": {
          const now = database.clock.now();
          return {
            ...nothingKnown,
            waits: await openAsks(executions, summary, now),
          };
        }
        default: {
          const [{ items }, { progress }] = await Promise.all([
            executions.events(id, {
              newestFirst: true,
              kinds: tellingKinds,
              limit: 1,
            }),
            executions.get(id),
          ]);
          return { ...nothingKnown, newest: items[0], progress };
        }
      }
    } catch {
      return nothingKnown; // Removed since, or unreadable.
    }
  }
}

/** The details of a run, and its state when they were read. */
interface Known {
  readonly version: number;
  readonly responses: number;
  readonly status: ExecutionSummary["status"];
  readonly details: RunDetails;
}

const nothingKnown: RunDetails = {
  newest: undefined,
  waits: [],
  progress: null,
  result: undefined,
};
