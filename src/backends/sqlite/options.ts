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
  /** A transaction ends after this many calls, parameter bytes or milliseconds. */
  readonly batchCalls: number;
  readonly batchBytes: number;
  readonly batchMs: number;
  /** A read may keep its snapshot for so long; then it fails with `READ_TOO_LONG`. */
  readonly readMs: number;
  /** The write-ahead log is restarted when it outgrows this. */
  readonly walBytes: number;
}

export interface SqliteOptions {
  /** Unless told: better-sqlite3 when it is installed, else node:sqlite. */
  readonly driver?: DriverName;
  /** `full` (the default) acknowledges after the flush, `normal` at COMMIT. */
  readonly durability?: "full" | "normal";
  readonly readOnly?: boolean;
  readonly clock?: Clock;
  /** How long locks of other processes are waited for; defaults to 15 s. */
  readonly busyTimeout?: Duration;
  /** Calls that may wait, defaults to 100,000; one more is refused with `QUEUE_FULL`. */
  readonly queueCallsMax?: number;
  readonly limits?: Partial<SqliteLimits>;
  /** Unless given, `process.emitWarning`. */
  readonly onWarning?: (warning: Warning) => void;
}

/** What tests put in place of the disk, and who opens a file for others. */
export interface SqliteSeams {
  /** A file that is not there is refused with `DATABASE_NOT_FOUND`, not made. */
  readonly mustExist?: boolean;
  /** Tables that are missing or older are refused with `SCHEMA_OUTDATED`, not made: who only looks in must not migrate under the app. */
  readonly mustBeCurrent?: boolean;
  /** Who moves it to Postgres may write to a file that is marked as being moved. */
  readonly isMover?: boolean;
  readonly flush?: FlushTuning;
  readonly fileSystem?: FileSystemProbe;
  /** Where the folder of peers' sockets is made; the system's temporary folder otherwise. */
  readonly socketBase?: string;
  readonly watch?: FolderWatch;
  /** Set on the writer once it is open, e.g. a small `max_page_count`. */
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
};

export function settingsOf(options: SqliteOptions): SqliteSettings {
  refuseUnknown(options, optionNames);
  const {
    clock = systemClock,
    busyTimeout = "15s",
    queueCallsMax = 100_000,
    limits: given = {},
  } = options;
  if (!isRecord(given)) throw optionInvalid("limits", given, "an object with limits");
  refuseUnknown(given, Object.keys(defaultLimits), "limits.");
  const limits = { ...defaultLimits, ...given };
  for (const [name, limit] of Object.entries(limits)) wholeNumber(`limits.${name}`, limit);
  return {
    driver: oneOf("driver", options.driver, [undefined, "better-sqlite3", "node:sqlite"]),
    durability: oneOf("durability", options.durability, ["full", "normal"]),
    readOnly: oneOf("readOnly", options.readOnly, [false, true]),
    clock: checkedClock(clock),
    busyBudgetMs: durationMs(busyTimeout, "busyTimeout"),
    queueCallsMax: wholeNumber("queueCallsMax", queueCallsMax),
    limits,
    warn: warner(options.onWarning),
  };
}
