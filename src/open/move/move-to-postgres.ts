import { MoveSource } from "../../backends/move/source.ts";
import type { MovedTable } from "../../backends/move/tables.ts";
import { MoveTarget } from "../../backends/move/target.ts";
import { checkUrl } from "../../backends/postgres/driver.ts";
import { openPostgres } from "../../backends/postgres/open.ts";
import type { PostgresOptions } from "../../backends/postgres/options.ts";
import type { SqliteOptions } from "../../backends/sqlite/options.ts";
import { keepAlive } from "../../host/timers.ts";
import { isHoldfastError } from "../../model/errors.ts";
import {
  givenFlag,
  givenFunction,
  givenSignal,
  optionsOf,
  tellProgress,
} from "../../model/shape.ts";
import { movedToPostgres } from "../../sql/move-mark.ts";
import type { MoveMark } from "../../sql/move-mark.ts";
import { executions } from "../../stores/execution/executions.ts";
import { copyTables } from "./copy-tables.ts";
import type { CopiedTable, MoveProgress } from "./copy-tables.ts";
import {
  moveArrived,
  moveElsewhere,
  moveGivenUp,
  moveNotBegun,
  refuseAborted,
  targetNotEmpty,
} from "./refusals.ts";

export interface MoveOptions {
  readonly sqlite?: SqliteOptions;
  /** Options of the target; `schema` names the schema of its tables. */
  readonly postgres?: PostgresOptions;
  /** Checked between slices. */
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (progress: MoveProgress) => void;
}

interface MoveReport {
  readonly tables: readonly CopiedTable[];
  /** Tables of the app, which are not copied. */
  readonly appTables: readonly string[];
  /** The number of attachments whose bytes are in files, which stay where they are. */
  readonly attachmentsElsewhere: number;
}

export interface MoveOutcome extends MoveReport {
  /** True when an earlier call had already copied everything. */
  readonly isRepeated: boolean;
  /** The number of runs taken from the processes left behind, so that they resume at once. */
  readonly released: number;
}

/**
 * Moves a SQLite file to an empty Postgres database, where all runs continue.
 *
 * The source is marked first, and from then on refuses every write of every process. Then
 * everything is copied and read back in one transaction of the target. So no process ever sees a
 * partial copy, and an interrupted move leaves an empty target. Calling it again copies from the
 * start, or finds that everything had arrived. See the ADR of 2026-11-17.
 *
 * @throws HoldfastError `TARGET_NOT_EMPTY`, `MOVED_TO_POSTGRES`,
 *   `MOVE_ELSEWHERE`, `MOVE_UNDER_WAY`, `MOVE_MISMATCH`, `DATABASE_DAMAGED`,
 *   `ABORTED`, `OUTCOME_UNKNOWN`, and what opening either database throws.
 */
export async function moveToPostgres(
  path: string,
  url: string,
  options?: MoveOptions,
): Promise<MoveOutcome> {
  const given = checkedOptions(options);
  return withBoth(path, url, given, async (source, target) => {
    const { signal } = given;
    const left = await source.mark();
    if (left === undefined) await checkSource(source, signal);
    refuseAborted(signal, left !== undefined);
    const { own, app } = await source.tables();
    const begun = await begin(source, target, own, left);
    const report =
      begun.arrived ??
      (await copy(source, target, begun.move, own, {
        appTables: app,
        attachmentsElsewhere: await source.attachmentsElsewhere(),
        ...given,
      }));
    given.onProgress({ phase: "arrived" });
    await source.leave(begun.move, "moved");
    const released = await releaseLeftBehind(url, given.postgres);
    return { ...report, isRepeated: begun.arrived !== undefined, released };
  });
}

/**
 * Checks the source. When the check is interrupted, the error reports the state of the move instead
 * of the check.
 */
async function checkSource(source: MoveSource, signal: AbortSignal | undefined): Promise<void> {
  try {
    await source.check(signal);
  } catch (error) {
    refuseAborted(signal, false);
    throw error;
  }
}

/**
 * Gives up an interrupted move: the file accepts writes again, and the target is as empty as
 * before. With `isTargetGone` the target is not opened, for a target that no longer exists.
 *
 * @throws HoldfastError `MOVE_NOT_BEGUN`, `MOVE_ARRIVED`, `MOVE_ELSEWHERE`,
 *   `MOVE_UNDER_WAY`, and what opening either database throws.
 */
export async function giveUpMove(
  path: string,
  url: string,
  options?: MoveOptions & { readonly isTargetGone?: boolean },
): Promise<void> {
  const { isTargetGone, ...rest } = options ?? {};
  const given = checkedOptions(rest);
  givenFlag("isTargetGone", isTargetGone);
  if (isTargetGone === true) {
    const source = await MoveSource.open(path, given.sqlite ?? {});
    try {
      return await source.stay((await movingMark(source)).move);
    } finally {
      await source.close();
    }
  }
  await withBoth(path, url, given, async (source, target) => {
    const left = await movingMark(source);
    // The source is freed while the target's lock is held, so that no other process can copy it.
    await target.transact(async () => {
      const found = await target.mark();
      if (found?.move !== left.move) throw moveElsewhere();
      if (found.state === "arrived") throw moveArrived();
      await source.stay(left.move);
      await target.clearMark();
    });
  });
}

async function movingMark(source: MoveSource): Promise<MoveMark> {
  const left = await source.mark();
  if (left?.state === "moved") throw moveArrived();
  if (left?.state !== "moving") throw moveNotBegun();
  return left;
}

interface Begun {
  readonly move: string;
  /** The report of an earlier call that copied everything. */
  readonly arrived: MoveReport | undefined;
}

/**
 * Marks the target before the source is marked, so the target of a marked source always knows the
 * move.
 */
function begin(
  source: MoveSource,
  target: MoveTarget,
  tables: readonly MovedTable[],
  left: MoveMark | undefined,
): Promise<Begun> {
  return target.transact(async () => {
    const found = await target.mark();
    const isOurs = left !== undefined && found?.move === left.move;
    if (isOurs && found?.state === "arrived") return { move: left.move, arrived: reportOf(found) };
    if (left?.state === "moved") throw movedToPostgres(left);
    if (left?.state === "moving" && !isOurs) throw moveElsewhere();
    const filled = await target.filled(tables);
    if (found?.state === "arrived" || filled.length > 0) throw targetNotEmpty(filled);
    const move = isOurs ? left.move : source.newMove();
    const at = source.now;
    await target.setMark({ move, state: "awaited", at, report: null });
    return { move, arrived: undefined };
  });
}

function reportOf({ report }: MoveMark): MoveReport {
  return JSON.parse(report ?? "{}") as MoveReport;
}

type CopyGiven = Omit<MoveReport, "tables"> &
  Required<Pick<MoveOptions, "onProgress">> &
  Pick<MoveOptions, "signal">;

/** Copies everything in one transaction of the target. */
function copy(
  source: MoveSource,
  target: MoveTarget,
  move: string,
  tables: readonly MovedTable[],
  { appTables, attachmentsElsewhere, signal, onProgress }: CopyGiven,
): Promise<MoveReport> {
  return target.transact(async () => {
    const awaited = await target.mark();
    if (awaited?.move !== move || awaited.state !== "awaited") throw moveGivenUp();
    await target.lockTables(tables);
    const filled = await target.filled(tables);
    if (filled.length > 0) throw targetNotEmpty(filled);
    refuseAborted(signal, (await source.mark()) !== undefined);
    // From here on every write to the source is refused. Every write acknowledged before is copied.
    const other = await source.leave(move, "moving");
    if (other !== undefined) throw moveElsewhere();
    const copied = await copyTables(source, target, tables, {
      signal,
      onProgress,
    });
    await target.setSequences(await source.lastKeys());
    const at = source.now;
    await target.recordAllDeaths(at);
    const report = { tables: copied, appTables, attachmentsElsewhere };
    await target.setMark({
      move,
      state: "arrived",
      at,
      report: JSON.stringify(report),
    });
    await target.analyze(copied.filter(({ rows }) => rows > 0));
    refuseAborted(signal, true);
    if ((await source.mark())?.move !== move) throw moveGivenUp();
    return report;
  });
}

/**
 * Releases runs held by the processes left behind, which can no longer write. A failure here does
 * not fail the move: a worker that starts does the same, and otherwise the leases expire.
 */
async function releaseLeftBehind(
  url: string,
  options: PostgresOptions | undefined,
): Promise<number> {
  try {
    const database = await openPostgres(url, { ...options, poolSize: 1 });
    try {
      return (await executions(database).releaseDead()).released;
    } finally {
      await database.close();
    }
  } catch (error) {
    if (isHoldfastError(error)) return 0;
    throw error;
  }
}

async function withBoth<T>(
  path: string,
  url: string,
  options: MoveOptions,
  work: (source: MoveSource, target: MoveTarget) => Promise<T>,
): Promise<T> {
  checkUrl(url);
  // Connections do not keep a process alive.
  const release = keepAlive();
  try {
    return await inBoth(path, url, options, work);
  } finally {
    release();
  }
}

async function inBoth<T>(
  path: string,
  url: string,
  { sqlite, postgres }: MoveOptions,
  work: (source: MoveSource, target: MoveTarget) => Promise<T>,
): Promise<T> {
  const source = await MoveSource.open(path, sqlite ?? {});
  try {
    const target = await MoveTarget.open(url, postgres ?? {});
    try {
      return await work(source, target);
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

const optionNames = [
  "sqlite",
  "postgres",
  "signal",
  "onProgress",
] as const satisfies readonly (keyof MoveOptions)[];

function checkedOptions(
  options: MoveOptions | undefined,
): MoveOptions & Required<Pick<MoveOptions, "onProgress">> {
  const given = optionsOf<MoveOptions>(options, optionNames);
  const { onProgress = () => undefined, signal } = given;
  givenFunction("onProgress", onProgress);
  givenSignal(signal);
  return { ...given, onProgress: (progress) => tellProgress(onProgress, progress) };
}
