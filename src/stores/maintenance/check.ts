import { tellProgress } from "../../model/shape.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import type { PayloadCodec } from "../../model/values/payload-codec.ts";
import { sealedView } from "../../model/values/payload-mark.ts";
import { valueCodec } from "../../model/values/value-codec.ts";
import { plainOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { appMigrationChecks } from "../app-migration/table-checks.ts";
import { attachmentChecks } from "../attachment/table-checks.ts";
import { awaitChecks } from "../effect/await/table-checks.ts";
import { blobChecks } from "../blob/table-checks.ts";
import type { Database } from "../../sql/database.ts";
import { effectChecks } from "../effect/table-checks.ts";
import { executionChecks } from "../execution/table-checks.ts";
import { suspiciousExecutions, type Suspicious } from "../execution/parts.ts";
import { leaseChecks } from "../lease/table-checks.ts";
import { ownerChecks } from "../owner/table-checks.ts";
import { wakesOf } from "../process/event-row.ts";
import { payloadSeal, recallPayloadMark } from "../payload-seal.ts";
import { processChecks } from "../process/table-checks.ts";
import { queueChecks } from "../queue/table-checks.ts";
import { scheduleChecks } from "../schedule/table-checks.ts";
import { sessionChecks } from "../session/table-checks.ts";
import { streamChecks } from "../stream/table-checks.ts";
import { unlessUnreadable } from "../damage.ts";
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

/** A table, and the number of its rows that were read. */
export interface CheckedTable {
  readonly table: string;
  readonly rows: number;
}

export interface MaintenanceCheckReport {
  readonly tables: readonly CheckedTable[];
  /** The first 1,000 damaged rows, in the order in which they were found. */
  readonly damaged: readonly DamagedRow[];
  /** The number of further damaged rows. */
  readonly moreDamaged: number;
  /**
   * False when a table could not be read to its end, because its file is damaged. `damaged` names
   * the table, with an empty key.
   */
  readonly isComplete: boolean;
  /** True when values were not checked, because their payload codec is missing or wrong. */
  readonly isSealed: boolean;
}

const damagedMax = 1_000;

/** The approximate bytes of content per snapshot; a larger row is read by itself. */
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

const payloadCodec = tableCheck<{ readonly id: number }>({
  table: "holdfast_payload_codec",
  select: sql`SELECT t.id, t.codec, t.sample`,
  from: sql`FROM holdfast_payload_codec t`,
  order: sql`t.id`,
  behind: ({ id }) => sql`t.id > ${id}`,
  keyOf: ({ id }) => String(id),
});

/** All tables of Holdfast. Describe a new table beside its store and add it here. */
const allChecks: readonly TableCheck[] = [
  ...executionChecks,
  ...streamChecks,
  ...sessionChecks,
  ...leaseChecks,
  ...queueChecks(wakesOf),
  ...blobChecks,
  ...attachmentChecks,
  ...processChecks,
  ...effectChecks,
  ...awaitChecks,
  ...scheduleChecks,
  ...triggerChecks,
  ...ownerChecks,
  ...appMigrationChecks,
  tick,
  payloadCodec,
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

const skipRow = plainOperation("skipTableRow", {
  key: (input) => input.check.table,
  *one({ check, after }: SkipRow): Tx<SkippedRow | undefined> {
    return yield* check.skipped(after);
  },
});

const checkSlice = plainOperation("checkTableSlice", {
  key: (input) => input.check.table,
  *one({ check, after, rowsMax, bytesMax }: CheckSlice): Tx<CheckedSlice> {
    return yield* check.slice(after, { rowsMax, bytesMax });
  },
});

/**
 * Reads every row of every Holdfast table: decodes it as reads do, recomputes stored hashes, and
 * checks that referenced rows exist. Then folds the log of each execution and compares its row with
 * the fold. Works in many short snapshots and writes nothing.
 */
export async function checkDatabase(
  database: Database,
  payload: PayloadCodec | undefined,
  given: SweepOptions<CheckedTable> | undefined,
): Promise<MaintenanceCheckReport> {
  const { signal, onProgress, rowsPerSlice } = sweepOptions(given);
  const findings = new Findings();
  await recallPayloadMark(database);
  const refusal = payloadSeal(database, payload).refusal;
  const isSealed = refusal !== undefined || payload === sealedView;
  const tools = toolsOf(database, isSealed ? sealedView : payload);
  const tables: CheckedTable[] = [];
  for (const check of allChecks) {
    let rows = 0;
    for await (const slice of slicesOf(database, check, rowsPerSlice, signal)) {
      if ("reason" in slice) findings.unreadable(check.table, slice);
      else {
        findings.add(slice.damaged(tools));
        rows += slice.rows;
        tellProgress(onProgress, { table: check.table, rows });
      }
    }
    tables.push({ table: check.table, rows });
  }
  let rows = 0;
  for await (const slice of suspiciousExecutions(database, { rowsPerSlice, signal })) {
    findings.addUnknown(contradictory(slice.suspicious));
    rows += slice.rows;
    tellProgress(onProgress, { table: executionTable, rows });
  }
  return { tables, isSealed, ...findings.report };
}

const executionTable = "holdfast_execution";

/** Damage in the log itself is found where the tables are read. */
function contradictory(found: readonly Suspicious[]): readonly DamagedRow[] {
  return found.flatMap(({ id, judgement, reason }) =>
    judgement.kind === "contradicts" || judgement.isStart
      ? { table: executionTable, key: id, reason }
      : [],
  );
}

/** An unreadable row, or, without a key, the rest of a table. */
interface Unreadable {
  readonly key: string | undefined;
  readonly reason: string;
}

/**
 * The slices of a table. If one is unreadable, its rows are read one by one. An unreadable row is
 * named by its key and skipped. The table ends only where the key is unreadable too.
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

class Findings {
  readonly #damaged: DamagedRow[] = [];
  #more = 0;
  #isComplete = true;

  add(found: readonly DamagedRow[]): void {
    for (const row of found)
      if (this.#damaged.length < damagedMax) this.#damaged.push(row);
      else this.#more += 1;
  }

  /** Leaves out rows that are already known to be damaged. */
  addUnknown(found: readonly DamagedRow[]): void {
    const known = new Set(this.#damaged.map(({ table, key }) => `${table} ${key}`));
    this.add(found.filter(({ table, key }) => !known.has(`${table} ${key}`)));
  }

  unreadable(table: string, { key, reason }: Unreadable): void {
    if (key === undefined) this.#isComplete = false;
    this.add([{ table, key: key ?? "", reason }]);
  }

  get report(): Omit<MaintenanceCheckReport, "tables" | "isSealed"> {
    return {
      damaged: this.#damaged,
      moreDamaged: this.#more,
      isComplete: this.#isComplete,
    };
  }
}

/** Stored values may be larger than the current limits. */
function toolsOf(database: Database, payload: PayloadCodec | undefined): CheckTools {
  const codec = valueCodec({
    sha256Hex: database.sha256Hex,
    limits: { charactersMax: Number.MAX_SAFE_INTEGER },
    ...(payload && { payload }),
    assertOpen() {
      if (payload === sealedView) payload.encode("");
    },
  });
  return {
    decode: (stored: Encoded) => codec.decode(stored),
    agrees: (domain, version, value, hash) => codec.agrees(domain, version, value, hash),
    sha256Hex: database.sha256Hex,
    bytes: database.bytes,
  };
}
