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
  /**
   * The schema of our tables, created if missing. Defaults to `holdfast`. Your own statements keep
   * the search path of the URL or of your user: a table created without a schema name lands where
   * it would without us, usually in `public`.
   */
  readonly schema?: string;
  /** Connections for calls. Defaults to 10; one more carries hints and the time. */
  readonly poolSize?: number;
  /**
   * `full` (the default) acknowledges after the server's flush, `normal` before it
   * (`synchronous_commit = off`).
   */
  readonly durability?: "full" | "normal";
  /** Defaults to the server's time. */
  readonly clock?: Clock;
  /**
   * The most calls that may wait. Defaults to 100,000; further calls are refused with `QUEUE_FULL`.
   */
  readonly queueCallsMax?: number;
  /** The interval of polls for unannounced changes while there are subscribers. Defaults to 1 s. */
  readonly pollInterval?: Duration;
  /**
   * The longest time the server may leave a statement without an answer. Defaults to 10 s. Then
   * another connection asks about it: a working statement is waited for, and a silent connection is
   * ended. Behind a pooler no connection can ask, so the limit is six times as long there.
   */
  readonly answerTimeout?: Duration;
  /** Set forms that may run at once. Defaults to 3. */
  readonly setFormLanes?: number;
  /**
   * False for a pooler that lends a session for each transaction: no prepared statements and no
   * session settings. True for a pooler that keeps a session for each connection. Defaults to false
   * where a pooler answers, and true elsewhere.
   */
  readonly prepare?: boolean;
  /**
   * `batched` (the default) notifies other processes right after commits, many changes at a time.
   * `transactional` notifies inside each transaction. The hints of all processes then arrive in
   * commit order, but commits wait for one another.
   */
  readonly notify?: "batched" | "transactional";
  /** Defaults to the `onEvent` of `openHoldfast`, or else `process.emitWarning`. */
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
  readonly answerMs: number;
  /** Undefined: depends on the server found. */
  readonly prepare: boolean | undefined;
  readonly notify: "batched" | "transactional";
  readonly warn: (warning: Warning) => void;
}

export function settingsOf(
  options: PostgresOptions,
  onWarning: PostgresOptions["onWarning"] = options.onWarning,
): Settings {
  refuseUnknown(options, known);
  const {
    schema = "holdfast",
    poolSize = 10,
    queueCallsMax = 100_000,
    pollInterval = "1s",
    answerTimeout = "10s",
    prepare,
    setFormLanes = 3,
    clock,
  } = options;
  return {
    schema: schemaName(schema),
    poolSize: wholeNumber("poolSize", poolSize, 1, 1_000),
    durability: oneOf("durability", options.durability, ["full", "normal"]),
    clock: clock === undefined ? undefined : checkedClock(clock),
    queueCallsMax: wholeNumber("queueCallsMax", queueCallsMax),
    pollMs: wholeNumber("pollInterval", durationMs(pollInterval, "pollInterval"), 10, 2 ** 31 - 1),
    // Appends per second from 1,000 callers on two cores: 1 lane 47,000, 2 lanes 56,000, 3 lanes
    // 66,000, 4 lanes 68,000. Below 256 callers there is no difference.
    setFormLanes: wholeNumber("setFormLanes", setFormLanes, 1, 64),
    answerMs: wholeNumber(
      "answerTimeout",
      durationMs(answerTimeout, "answerTimeout"),
      100,
      2 ** 31 - 1,
    ),
    prepare: prepare === undefined ? undefined : oneOf("prepare", prepare, [true, false]),
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
  "answerTimeout",
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
