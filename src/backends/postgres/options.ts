import type { Clock } from "../../model/time/clock.ts";
import { durationMs } from "../../model/time/durations.ts";
import type { Duration } from "../../model/time/durations.ts";
import type { Warning } from "../../sql/database.ts";
import {
  checkedClock,
  oneOf,
  optionInvalid,
  refuseUnknown,
  warner,
  wholeNumber,
} from "../option-checks.ts";

export interface PostgresOptions {
  /** Where our tables live; made if missing. Defaults to `holdfast`. Your own statements keep the search path of the URL or of your user: a table that you create without naming a schema lands where it would without us, in `public` as a rule. */
  readonly schema?: string;
  /** Connections for calls, defaults to 10; one more carries hints and the time. */
  readonly poolSize?: number;
  /** `full` (the default) acknowledges after the server's flush, `normal` before it (`synchronous_commit = off`). */
  readonly durability?: "full" | "normal";
  /** The server's time unless given. */
  readonly clock?: Clock;
  /** Calls that may wait, defaults to 100,000; one more is refused with `QUEUE_FULL`. */
  readonly queueCallsMax?: number;
  /** How often, while somebody listens, to look for changes that no notification told; defaults to 1 s. */
  readonly pollInterval?: Duration;
  /** Set forms that may run at once, defaults to 3. */
  readonly setFormLanes?: number;
  /** False for a pooler that hands out connections per transaction: no prepared statements and no session settings. */
  readonly prepare?: boolean;
  /**
   * `batched` (the default) notifies other processes right after commits, many
   * changes at a time. `transactional` notifies inside each transaction: the
   * hints of all processes come in commit order, and commits queue up behind
   * one another for it.
   */
  readonly notify?: "batched" | "transactional";
  /** Unless given, `process.emitWarning`. */
  readonly onWarning?: (warning: Warning) => void;
}

/** Options with their defaults, checked. */
export interface Settings {
  readonly schema: string;
  readonly poolSize: number;
  readonly durability: "full" | "normal";
  readonly clock: Clock | undefined;
  readonly queueCallsMax: number;
  readonly pollMs: number;
  readonly setFormLanes: number;
  readonly prepare: boolean;
  readonly notify: "batched" | "transactional";
  readonly warn: (warning: Warning) => void;
}

export function settingsOf(options: PostgresOptions): Settings {
  refuseUnknown(options, known);
  const {
    schema = "holdfast",
    poolSize = 10,
    queueCallsMax = 100_000,
    pollInterval = "1s",
    setFormLanes = 3,
    clock,
    onWarning,
  } = options;
  return {
    schema: schemaName(schema),
    poolSize: wholeNumber("poolSize", poolSize, 1, 1_000),
    durability: oneOf("durability", options.durability, ["full", "normal"]),
    clock: clock === undefined ? undefined : checkedClock(clock),
    queueCallsMax: wholeNumber("queueCallsMax", queueCallsMax),
    pollMs: wholeNumber("pollInterval", durationMs(pollInterval, "pollInterval"), 10, 2 ** 31 - 1),
    // Appends a second from 1,000 callers on two cores: 1 lane 47,000, 2 lanes
    // 56,000, 3 lanes 66,000, 4 lanes 68,000; below 256 callers no difference.
    setFormLanes: wholeNumber("setFormLanes", setFormLanes, 1, 64),
    prepare: oneOf("prepare", options.prepare, [true, false]),
    notify: oneOf("notify", options.notify, ["batched", "transactional"]),
    warn: warner(onWarning),
  };
}

const known = [
  "schema",
  "poolSize",
  "durability",
  "clock",
  "queueCallsMax",
  "pollInterval",
  "setFormLanes",
  "prepare",
  "notify",
  "onWarning",
] satisfies (keyof PostgresOptions)[];

function schemaName(schema: string): string {
  if (typeof schema === "string" && /^[a-z_][a-z0-9_]{0,62}$/.test(schema)) return schema;
  throw optionInvalid(
    "schema",
    schema,
    "a name of at most 63 lower-case letters, digits and underscores that does not start with a digit",
  );
}
