import type { Clock } from "../model/time/clock.ts";
import type { Database } from "../sql/database.ts";
import type { ExecutionContext } from "../stores/execution/context.ts";
import type { Drain } from "./drain.ts";
import type { ExternalTokens } from "./client/external-tokens.ts";
import type { Notice, RuntimeEvent } from "./runtime-event.ts";
import type { RunningBodies } from "./running-bodies.ts";
import type { ParkedWaits } from "./client/parked-waits.ts";
import type { UnservedFunctions } from "./client/unserved.ts";
import type { StorePages } from "./client/store-pages.ts";

/** What clients and workers of one database share. */
export interface RuntimeContext {
  readonly database: Database;
  readonly pages: StorePages;
  /** For operations that are run as they are: what the runtime gives them it has made itself. */
  readonly store: ExecutionContext;
  /** The name of the payload codec, if there is one. */
  readonly payload: string | null;
  readonly clock: Clock;
  /** The same time, for what recurs for ever and is nobody's reason to wait: renewals, sweeps, warnings. */
  readonly background: Clock;
  /** The same time, for the instants of schedules. */
  readonly scheduling: Clock;
  readonly bodies: RunningBodies;
  readonly drain: Drain;
  readonly tokens: ExternalTokens;
  readonly unserved: UnservedFunctions;
  readonly parked: ParkedWaits;
  /** By which signal the process was told to end, once it was. */
  readonly ending: { by: NodeJS.Signals | undefined };
  /** For the log hook of the user's. Never throws. */
  readonly say: (event: RuntimeEvent) => void;
  /** The same for what the runtime has to say itself. */
  readonly tell: (notice: Notice) => void;
}
