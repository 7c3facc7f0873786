import { systemClock } from "../../host/clock.ts";
import type { Clock } from "../../model/time/clock.ts";
import { durationMs } from "../../model/time/durations.ts";
import type { Duration } from "../../model/time/durations.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";
import type { Warning } from "../../sql/database.ts";
import {
  checkedClock,
  oneOf,
  optionInvalid,
  refuseUnknown,
  warner,
  wholeNumber,
} from "../option-checks.ts";
import type { DriverName } from "./drivers/drivers.ts";
import type { FileSystemProbe } from "./file.ts";
import type { FlushTuning } from "./write/flusher.ts";
import type { FolderWatch } from "./neighbours/foreign-commits.ts";

interface SqliteLimits {
  /** Limits of a transaction: it ends after this many calls, parameter bytes or milliseconds. */
  readonly batchCalls: number;
  readonly batchBytes: number;
  readonly batchMs: number;
  /**
   * The longest time a read may keep its snapshot, in milliseconds. Then it fails with
   * `READ_TOO_LONG`.
   */
  readonly readMs: number;
  /** The size in bytes above which the write-ahead log is restarted. */
  readonly walBytes: number;
  /** The page cache of each of our two connections, in bytes. Defaults to 16 MiB. */
  readonly cacheBytes: number;
}

/** The largest cache that SQLite can be configured with. */
const cacheBytesMax = 2 ** 40;

export interface SqliteOptions {
  /** Defaults to better-sqlite3 when it is installed and works here, else node:sqlite. */
  readonly driver?: DriverName;
  /** `full` (the default) acknowledges after the flush, `normal` at COMMIT. */
  readonly durability?: "full" | "normal";
  readonly readOnly?: boolean;
  readonly clock?: Clock;
  /** The longest wait for locks of other processes. Defaults to 15 s. */
  readonly busyTimeout?: Duration;
  /**
   * The most calls that may wait. Defaults to 100,000; further calls are refused with `QUEUE_FULL`.
   */
  readonly queueCallsMax?: number;
  readonly limits?: Partial<SqliteLimits>;
  /** Defaults to `process.emitWarning`. */
  readonly onWarning?: (warning: Warning) => void;
}

/** Replacements for the disk in tests, and settings of tools that open a file. */
export interface SqliteSeams {
  /** Refuses a missing file with `DATABASE_NOT_FOUND` instead of creating it. */
  readonly mustExist?: boolean;
  /**
   * Refuses missing or older tables with `SCHEMA_OUTDATED` instead of migrating. A tool that only
   * inspects must not migrate under the app.
   */
  readonly mustBeCurrent?: boolean;
  /**
   * Set by the process that moves the file to Postgres. It may write to a file marked as being
   * moved.
   */
  readonly isMover?: boolean;
  /** Receives warnings when the options have no listener. */
  readonly onWarning?: (warning: Warning) => void;
  readonly flush?: FlushTuning;
  readonly fileSystem?: FileSystemProbe;
  /** The parent folder of the peers' socket folder. Defaults to the system's temporary folder. */
  readonly socketBase?: string;
  readonly watch?: FolderWatch;
  /** Pragmas set on the writer once it is open, e.g. a small `max_page_count`. */
  readonly pragmas?: readonly string[];
}

export interface SqliteSettings {
  readonly driver: DriverName | undefined;
  readonly durability: "full" | "normal";
  readonly readOnly: boolean;
  readonly clock: Clock;
  readonly busyBudgetMs: number;
  readonly queueCallsMax: number;
  readonly limits: SqliteLimits;
  readonly warn: (warning: Warning) => void;
}

const optionNames = [
  "driver",
  "durability",
  "readOnly",
  "clock",
  "busyTimeout",
  "queueCallsMax",
  "limits",
  "onWarning",
] satisfies (keyof SqliteOptions)[];

const defaultLimits: SqliteLimits = {
  batchCalls: 256,
  batchBytes: 1_048_576,
  batchMs: 4,
  readMs: 1_000,
  walBytes: 16 * 1_048_576,
  cacheBytes: 16 * 1_048_576,
};

export function settingsOf(
  options: SqliteOptions,
  fallback?: SqliteOptions["onWarning"],
): SqliteSettings {
  refuseUnknown(options, optionNames);
  const {
    clock = systemClock,
    busyTimeout = "15s",
    queueCallsMax = 100_000,
    limits: given = {},
    onWarning = fallback,
  } = options;
  if (!isRecord(given)) throw optionInvalid("limits", given, "an object with limits");
  refuseUnknown(given, Object.keys(defaultLimits), "limits.");
  const limits = { ...defaultLimits, ...given };
  for (const [name, limit] of Object.entries(limits)) wholeNumber(`limits.${name}`, limit);
  wholeNumber("limits.cacheBytes", limits.cacheBytes, 1, cacheBytesMax);
  return {
    driver: oneOf("driver", options.driver, [undefined, "better-sqlite3", "node:sqlite"]),
    durability: oneOf("durability", options.durability, ["full", "normal"]),
    readOnly: oneOf("readOnly", options.readOnly, [false, true]),
    clock: checkedClock(clock),
    busyBudgetMs: durationMs(busyTimeout, "busyTimeout"),
    queueCallsMax: wholeNumber("queueCallsMax", queueCallsMax),
    limits,
    warn: warner(onWarning),
  };
}
