import { after } from "../../host/timers.ts";
import type { Holdfast } from "../../runtime/client/holdfast.ts";
import { changedRows, changeLine, frameOf } from "./frame.ts";
import type { Screen } from "./screen.ts";
import { watchRuns, type RunsView } from "./watch-runs.ts";

export interface LiveRunsOptions {
  readonly timeZone: string;
  /** The lines above the runs, computed for every drawing. */
  readonly header?: () => readonly string[];
  /** Changes the view before it is shown, to add facts that the database does not have. */
  readonly toShow?: (view: RunsView) => RunsView;
  readonly rowsMax?: number;
}

export interface LiveRuns {
  /** Redraws the current view after the header has changed. */
  draw(): void;
  stop(): Promise<void>;
}

/** The interval in milliseconds at which durations are redrawn. */
const tickMs = 1_000;
const defaultRowsMax = 20;

/**
 * Shows the runs of a database: drawn in place on a terminal, elsewhere as one
 * line for each change.
 */
export function showRuns(
  holdfast: Pick<Holdfast, "database" | "executions">,
  screen: Screen,
  options: LiveRunsOptions,
): LiveRuns {
  const { header = () => [], toShow = (view) => view } = options;
  const { clock } = holdfast.database;
  const rowsMax = (): number =>
    Math.min(
      options.rowsMax ?? defaultRowsMax,
      screen.isLive ? screen.rows() - header().length - 3 : Infinity,
    );
  let read: RunsView | undefined;
  let shown: RunsView | undefined;
  let cancelTick = (): void => undefined;
  let isStopped = false;

  const draw = (): void => {
    if (isStopped) return;
    const now = clock.now();
    const view = read && toShow(read);
    if (screen.isLive) {
      const { style } = screen;
      const canvas = { columns: screen.columns(), style, now };
      screen.show([...header(), ...(view ? frameOf(view, canvas) : [])]);
      cancelTick();
      cancelTick = after(tickMs, draw);
    } else if (view !== undefined) {
      for (const row of changedRows(shown, view)) screen.say(changeLine(row, now), { run: row });
      shown = view;
    }
  };
  const stopWatching = watchRuns(holdfast, {
    timeZone: options.timeZone,
    rowsMax,
    onView(view) {
      read = view;
      draw();
    },
    onError: (error) => screen.say(`The runs cannot be read: ${(error as Error).message}`),
  });
  if (screen.isLive) draw();
  return {
    draw,
    async stop() {
      await stopWatching();
      isStopped = true;
      cancelTick();
    },
  };
}
