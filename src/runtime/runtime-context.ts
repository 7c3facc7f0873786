import type { Clock } from "../model/time/clock.ts";
import type { Database } from "../sql/database.ts";
import type { ExecutionContext } from "../stores/execution/context.ts";
import type { Drain } from "./drain.ts";
import type { ExternalTokens } from "./client/external-tokens.ts";
import type { Notice, RuntimeEvent } from "./runtime-event.ts";
import type { Reports } from "./reports.ts";
import type { RunningBodies } from "./running-bodies.ts";
import type { ParkedWaits } from "./client/parked-waits.ts";
import type { ProcessPlaces } from "./worker/process-places.ts";
import type { RunStreams } from "./stream/run-stream.ts";
import type { StreamWriter } from "./stream/stream-writer.ts";
import type { UnservedFunctions } from "./client/unserved.ts";
import type { StorePages } from "./client/store-pages.ts";

/** The objects that clients and workers of one database share. */
export interface RuntimeContext {
  readonly database: Database;
  readonly pages: StorePages;
  /** For operations that are run without checks: the runtime makes their input itself. */
  readonly store: ExecutionContext;
  /** The name of the payload codec, if there is one. */
  readonly payload: string | null;
  readonly clock: Clock;
  /** The same time, for work that recurs forever and that no caller waits for: renewals, sweeps, warnings. */
  readonly background: Clock;
  /** The same time, for the instants of schedules. */
  readonly scheduling: Clock;
  readonly bodies: RunningBodies;
  readonly drain: Drain;
  readonly tokens: ExternalTokens;
  readonly unserved: UnservedFunctions;
  readonly parked: ParkedWaits;
  readonly places: ProcessPlaces;
  /** Writes the live output of runs. */
  readonly output: StreamWriter;
  /** The readers of live output. */
  readonly streams: RunStreams;
  /** The signal that told the process to end, once one has. */
  readonly ending: { by: NodeJS.Signals | undefined };
  /** Reports to the user's log hook. Never throws. */
  readonly say: (event: RuntimeEvent) => void;
  /** Counts runs, and reports their failures. */
  readonly reports: Reports;
  /** Reports a notice of the runtime itself. */
  readonly tell: (notice: Notice) => void;
}
