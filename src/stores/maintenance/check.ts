import { isHoldfastError } from "../../model/errors.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import type { PayloadCodec } from "../../model/values/payload-codec.ts";
import { valueCodec } from "../../model/values/value-codec.ts";
import { plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { appMigrationChecks } from "../app-migration/table-checks.ts";
import { attachmentChecks } from "../attachment/table-checks.ts";
import { awaitChecks } from "../effect/await/table-checks.ts";
import { blobChecks } from "../blob/table-checks.ts";
import type { Database } from "../../sql/database.ts";
import { effectGroupChecks } from "../effect/groups/table-checks.ts";
import { effectChecks } from "../effect/table-checks.ts";
import { executionChecks } from "../execution/table-checks.ts";
import { leaseChecks } from "../lease/table-checks.ts";
import { ownerChecks } from "../owner/table-checks.ts";
import { wakesOf } from "../process/event-row.ts";
import { processChecks } from "../process/table-checks.ts";
import { queueChecks } from "../queue/table-checks.ts";
import { scheduleChecks } from "../schedule/table-checks.ts";
import { sessionChecks } from "../session/table-checks.ts";
import { sweepOptions, type SweepOptions } from "../removal.ts";
import { tableCheck } from "../table-check.ts";
import type {
  CheckTools,
  CheckedSlice,
  DamagedRow,
  SkippedRow,
  SliceLimits,
  TableCheck,
} from "../table-check.ts";
import { triggerChecks } from "../trigger/table-checks.ts";

/** A table, and how many of its rows were read. */
export interface CheckedTable {
  readonly table: string;
  readonly rows: number;
}

export interface MaintenanceCheckReport {
  readonly tables: readonly CheckedTable[];
  /** The first 1,000 damaged rows, in the order in which they were found. */
  readonly damaged: readonly DamagedRow[];
  /** How many more there are. */
  readonly moreDamaged: number;
  /** False when a table could not be read to its end: its file is damaged. `damaged` names the table, with an empty key. */
  readonly isComplete: boolean;
}

const damagedMax = 1_000;

/** Content per snapshot, in about bytes; a row that has more is read alone. */
const bytesPerSlice = 1024 * 1024;

const tick = tableCheck<{ readonly id: number }>({
  table: "holdfast_tick",
  select: sql`SELECT t.id, t.n`,
  from: sql`FROM holdfast_tick t`,
  order: sql`t.id`,
  behind: ({ id }) => sql`t.id > ${id}`,
  keyOf: ({ id }) => String(id),
});

const move = tableCheck<{ readonly id: number; readonly state: string }>({
  table: "holdfast_move",
  select: sql`SELECT t.id, t.move, t.state, t.at, t.report`,
  from: sql`FROM holdfast_move t`,
  order: sql`t.id`,
  behind: ({ id }) => sql`t.id > ${id}`,
  keyOf: ({ id }) => String(id),
  judge: ({ state }) =>
    ["moving", "moved", "awaited", "arrived"].includes(state)
      ? undefined
      : "It has a state that no operation of Holdfast writes.",
});

/** Every table of ours. A new one is described beside its store and added here. */
const allChecks: readonly TableCheck[] = [
  ...executionChecks,
  ...sessionChecks,
  ...leaseChecks,
  ...queueChecks(wakesOf),
  ...blobChecks,
  ...attachmentChecks,
  ...processChecks,
  ...effectChecks,
  ...awaitChecks,
  ...effectGroupChecks,
  ...scheduleChecks,
  ...triggerChecks,
  ...ownerChecks,
  ...appMigrationChecks,
  tick,
  move,
];

interface CheckSlice extends SliceLimits {
  readonly check: TableCheck;
  readonly after: object | undefined;
}

interface SkipRow {
  readonly check: TableCheck;
  readonly after: object | undefined;
}

const skipRow: Operation<SkipRow, SkippedRow | undefined> = plainOperation("skipTableRow", {
  key: (input: SkipRow) => input.check.table,
  *one({ check, after }) {
    return yield* check.skipped(after);
  },
});

const checkSlice: Operation<CheckSlice, CheckedSlice> = plainOperation("checkTableSlice", {
  key: (input: CheckSlice) => input.check.table,
  *one({ check, after, rowsMax, bytesMax }) {
    return yield* check.slice(after, { rowsMax, bytesMax });
  },
});

/**
 * Reads every row of every table of ours, decodes it as reads do, computes the
 * stored hashes anew and looks whether what rows refer to is there. In many
 * short snapshots; nothing is written.
 */
export async function checkDatabase(
  database: Database,
  payload: PayloadCodec | undefined,
  given: SweepOptions<CheckedTable> | undefined,
): Promise<MaintenanceCheckReport> {
  const { signal, onProgress, rowsPerSlice } = sweepOptions(given);
  const findings = new Findings();
  const tools = toolsOf(database, payload);
  const tables: CheckedTable[] = [];
  for (const check of allChecks) {
    let rows = 0;
    for await (const slice of slicesOf(database, check, rowsPerSlice, signal)) {
      if ("reason" in slice) findings.unreadable(check.table, slice);
      else {
        findings.add(slice.damaged(tools));
        rows += slice.rows;
        onProgress?.({ table: check.table, rows });
      }
    }
    tables.push({ table: check.table, rows });
  }
  return { tables, ...findings.report };
}

/** A row that cannot be read, or, without a key, the rest of a table. */
interface Unreadable {
  readonly key: string | undefined;
  readonly reason: string;
}

/**
 * The slices of a table. Where one cannot be read its rows are read one by
 * one; one that cannot be is named by its key and passed over. Only where the
 * key cannot be read either, the table ends.
 */
async function* slicesOf(
  database: Database,
  check: TableCheck,
  rowsPerSlice: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<CheckedSlice | Unreadable> {
  let after: object | undefined;
  let rowsMax = rowsPerSlice;
  for (;;) {
    const input = { check, after, rowsMax, bytesMax: bytesPerSlice };
    const slice = await unlessUnreadable(database.read(checkSlice, input, { signal }));
    await database.pause();
    if (!(slice instanceof Error)) {
      yield slice;
      if (slice.last === undefined) return;
      after = slice.last;
    } else if (rowsMax > 1) rowsMax = 1;
    else {
      const skipped = await unlessUnreadable(database.read(skipRow, { check, after }, { signal }));
      const isLost = skipped instanceof Error || skipped === undefined;
      const key = isLost ? undefined : skipped.key;
      yield { key, reason: slice.message };
      if (isLost) return;
      after = skipped.row;
      rowsMax = rowsPerSlice;
    }
  }
}

/** What a read gives, or why the database cannot read it. */
async function unlessUnreadable<T>(reading: Promise<T>): Promise<T | Error> {
  try {
    return await reading;
  } catch (error) {
    if (isHoldfastError(error) && unreadableCodes.has(error.code)) return error;
    throw error;
  }
}

/** What a read fails with when the stored bytes are to blame, or a table that is gone. */
const unreadableCodes: ReadonlySet<string> = new Set([
  "CORRUPT_ROW",
  "DATABASE_DAMAGED",
  "STATEMENT_FAILED",
]);

class Findings {
  readonly #damaged: DamagedRow[] = [];
  #more = 0;
  #isComplete = true;

  add(found: readonly DamagedRow[]): void {
    for (const row of found)
      if (this.#damaged.length < damagedMax) this.#damaged.push(row);
      else this.#more += 1;
  }

  unreadable(table: string, { key, reason }: Unreadable): void {
    if (key === undefined) this.#isComplete = false;
    this.add([{ table, key: key ?? "", reason }]);
  }

  get report(): Omit<MaintenanceCheckReport, "tables"> {
    return {
      damaged: this.#damaged,
      moreDamaged: this.#more,
      isComplete: this.#isComplete,
    };
  }
}

/** What is stored may be larger than the limits of today. */
function toolsOf(database: Database, payload: PayloadCodec | undefined): CheckTools {
  const codec = valueCodec({
    sha256Hex: database.sha256Hex,
    limits: { charactersMax: Number.MAX_SAFE_INTEGER },
    ...(payload && { payload }),
  });
  return {
    decode: (stored: Encoded) => codec.decode(stored),
    hash: (domain, version, value) => codec.hash(domain, version, value),
    sha256Hex: database.sha256Hex,
    bytes: database.bytes,
  };
}
