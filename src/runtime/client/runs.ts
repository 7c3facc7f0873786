import { HoldfastError, isHoldfastError, originOf, type ErrorCode } from "../../model/errors.ts";
import {
  checkedText,
  givenFlag,
  givenFunction,
  givenSignal,
  optionsOf,
  tellProgress,
} from "../../model/shape.ts";
import { topLevelOf, type ExecutionId } from "../../model/ids/execution-id.ts";
import { retryId } from "../../model/ids/retry-id.ts";
import type { Executions } from "../../stores/execution/executions.ts";
import { filterNames, type ListPlace } from "../../stores/execution/read/list-filter.ts";
import type { RuntimeContext } from "../runtime-context.ts";

type ListOptions = NonNullable<Parameters<Executions["list"]>[0]>;

/** Selects the runs of a command. All given conditions must hold, as for `list`. */
type RunFilter = Omit<ListOptions, "after" | "limit" | "newerThan" | "signal" | "timeout">;

interface BulkOptions {
  /** Counts the runs that would change, and changes nothing. */
  readonly dryRun?: boolean;
  /** Stops the command between two runs. Changes made so far stay. */
  readonly signal?: AbortSignal;
  /** Called after each page of runs with the report so far. */
  readonly onProgress?: (report: BulkReport) => void;
}

interface CancelAllOptions extends BulkOptions {
  /** A reason for people to read; kept in the log and in the result. */
  readonly reason?: string;
  readonly force?: boolean;
}

/** The outcome of a command for many runs. */
export interface BulkReport {
  /** Runs that match the filter. */
  readonly matched: number;
  readonly changed: number;
  /** Runs that ended before the command reached them, or needed no change. */
  readonly unchanged: number;
  readonly failed: number;
  /** The errors of the first hundred failures. */
  readonly failures: readonly {
    readonly id: string;
    readonly code: ErrorCode;
    readonly message: string;
  }[];
}

/**
 * Finds runs, and applies one command to all runs that match a filter: the runs that exist when
 * the command is called, newest first. Each run is changed on its own. After an error or a
 * crash, repeat the call to continue.
 */
export interface Runs extends Pick<Executions, "list" | "count"> {
  /**
   * Asks runs to end. With `force` they end without executing their code. Top-level runs come
   * first, so that no parent continues with the outcome of a cancelled child. Runs that end
   * with their parent are not counted.
   * @throws HoldfastError `OPTION_INVALID`, `ABORTED`
   * @example
   * const { matched } = await holdfast.runs.cancelAll({ tag: "eu" }, { dryRun: true });
   */
  cancelAll(filter: RunFilter, options?: CancelAllOptions): Promise<BulkReport>;
  /** Pauses runs: they start nothing new until they are resumed. @throws HoldfastError `OPTION_INVALID`, `ABORTED` */
  pauseAll(filter: RunFilter, options?: BulkOptions): Promise<BulkReport>;
  /** Resumes paused runs. @throws HoldfastError `OPTION_INVALID`, `ABORTED` */
  resumeAll(filter: Omit<RunFilter, "status">, options?: BulkOptions): Promise<BulkReport>;
  /** Returns parked runs to the workers, which retry them. @throws HoldfastError `OPTION_INVALID`, `ABORTED` */
  unparkAll(filter: Omit<RunFilter, "status">, options?: BulkOptions): Promise<BulkReport>;
  /**
   * Copies each failed run; the copy continues from just before the failure. Its id is
   * `retry:<id>`, so a repeated call copies nothing twice. The copy of a failed copy is
   * `retry:2@<id>`. An id that would be too long is replaced by its hash. Children are retried
   * by the runs that called them.
   * @throws HoldfastError `OPTION_INVALID`, `ABORTED`
   */
  retryAll(
    filter: Omit<RunFilter, "status" | "topLevelOnly" | "parent">,
    options?: BulkOptions,
  ): Promise<BulkReport>;
  /**
   * Erases runs that have ended, with their children: see `erase` of a handle.
   * @throws HoldfastError `OPTION_INVALID`, `ABORTED`
   * @example await holdfast.runs.eraseAll({ tag: "customer:ada" });
   */
  eraseAll(
    filter: Omit<RunFilter, "status" | "topLevelOnly" | "parent" | "hideFinished">,
    options?: BulkOptions,
  ): Promise<BulkReport>;
}

export function runsOf(context: RuntimeContext): Runs {
  const { executions } = context.pages;
  const { sha256Hex } = context.database;
  const open = { hideFinished: true };
  const failed = { status: "failed", topLevelOnly: true } as const;
  const ended = { status: "finished", topLevelOnly: true } as const;
  return {
    list: executions.list,
    count: (options) => executions.count(options),
    async cancelAll(filter, options) {
      const { reason, force, ...rest } = optionsOf<CancelAllOptions>(options, [
        ...bulkNames,
        "reason",
        "force",
      ]);
      const how = {
        ...(reason !== undefined && {
          reason: checkedText("A reason", reason, 4_096),
        }),
        ...(givenFlag("force", force) === true && { force: true }),
      };
      return applied(context, filter, rest, {
        fixed: open,
        topFirst: true,
        async act(id) {
          const outcome = await executions.cancel(id, how);
          return outcome === "cancelled" || outcome === "requested";
        },
      });
    },
    pauseAll: (filter, options) =>
      applied(context, filter, options, {
        fixed: open,
        act: async (id) => (await executions.pause(id)).isChanged,
      }),
    resumeAll: (filter, options) =>
      applied(context, filter, options, {
        fixed: { status: "paused" },
        refused: ["status"],
        act: async (id) => (await executions.unpause(id)).isChanged,
      }),
    unparkAll: (filter, options) =>
      applied(context, filter, options, {
        fixed: { status: "parked" },
        refused: ["status"],
        act: async (id) => (await executions.unpark(id)).isChanged,
      }),
    retryAll: (filter, options) =>
      applied(context, filter, options, {
        fixed: failed,
        refused: ["status", "topLevelOnly", "parent"],
        async act(id) {
          const copy = await executions.retry(id, {
            id: retryId(id, sha256Hex),
          });
          return !copy.existed;
        },
      }),
    eraseAll: (filter, options) =>
      applied(context, filter, options, {
        fixed: ended,
        refused: ["status", "topLevelOnly", "parent", "hideFinished"],
        async act(id, wait) {
          await executions.erase(id, wait);
          return true;
        },
      }),
  };
}

const bulkNames = [
  "dryRun",
  "signal",
  "onProgress",
] as const satisfies readonly (keyof BulkOptions)[];

/** The change that a command makes to each run. */
interface Command {
  /** Conditions that the command always adds to the filter. */
  readonly fixed: RunFilter;
  /** Conditions that the caller's filter must not contain. */
  readonly refused?: readonly (keyof RunFilter)[];
  /** Runs at the top are changed before those below them, which are newer. */
  readonly topFirst?: boolean;
  /** True when the call changed the run. */
  readonly act: (id: string, wait: { readonly signal?: AbortSignal }) => Promise<boolean>;
}

/** The number of runs that are changed side by side, so that they share transactions and flushes. */
const runsPerPage = 100;
const failuresMax = 100;

async function applied(
  context: RuntimeContext,
  given: RunFilter,
  options: BulkOptions | undefined,
  command: Command,
): Promise<BulkReport> {
  const { fixed, refused = [], topFirst = false } = command;
  refuseNoFilter(given);
  const names = filterNames.filter(
    (name): name is keyof RunFilter => name !== "newerThan" && !refused.includes(name),
  );
  const asked = optionsOf<RunFilter>(given, names);
  refuseUndefinedFilter(asked);
  // The command's own condition overwrites this one, so a typo here would go unnoticed.
  givenFlag("hideFinished", asked.hideFinished);
  const filter = { ...asked, ...fixed };
  const checked = checkedOptions(options);
  if (!topFirst || filter.topLevelOnly === true || filter.parent !== undefined)
    return eachPage(context, filter, checked, command.act, nothingDone);
  const atTheTop = { ...filter, topLevelOnly: true };
  const { executions } = context.pages;
  const listed = await executions.list({ ...filter, limit: runsPerPage });
  const first = await eachPage(context, atTheTop, checked, command.act, nothingDone);
  // Runs that the cancelled parents have started since are part of their cleanup.
  const [newest] = listed.items;
  return eachPage(context, filter, checked, command.act, first, {
    isMeant: isBelow,
    ...(newest !== undefined && { upTo: newest }),
  });
}

/** True if a run is the child of another. */
function isBelow(id: string): boolean {
  return topLevelOf(id as ExecutionId) !== id;
}

/** The part of the matching runs that a command means; all by default. */
interface Meant {
  readonly isMeant?: (id: string) => boolean;
  /** The newest of these runs. */
  readonly upTo?: ListPlace;
}

/** True if a run precedes another in the list. */
function isNewer(run: ListPlace, than: ListPlace): boolean {
  return run.createdAt > than.createdAt || (run.createdAt === than.createdAt && run.id > than.id);
}

async function eachPage(
  { pages: { executions }, database }: RuntimeContext,
  filter: RunFilter,
  { dryRun, signal, onProgress }: BulkOptions,
  act: Command["act"],
  before: BulkReport,
  { isMeant = () => true, upTo }: Meant = {},
): Promise<BulkReport> {
  const wait = { ...(signal && { signal }) };
  let report = before;
  let after: string | undefined;
  do {
    if (signal?.aborted === true) throw stopped(report, signal);
    const page = await executions.list({
      ...filter,
      limit: runsPerPage,
      ...(after !== undefined && { after }),
    });
    const meant = page.items.filter(
      (run) => isMeant(run.id) && (upTo === undefined || !isNewer(run, upTo)),
    );
    const acted = meant.map(async ({ id }) =>
      dryRun === true ? undefined : outcomeOf(id, () => act(id, wait)),
    );
    const lost = page.damaged
      .map(({ key }) => key)
      .filter(isMeant)
      .map(unreadable);
    report = added(report, [...(await Promise.all(acted)), ...lost]);
    tellProgress(onProgress, report);
    after = page.next;
    await database.pause();
  } while (after !== undefined);
  return report;
}

function checkedOptions(given: BulkOptions | undefined): BulkOptions {
  const options = optionsOf<BulkOptions>(given, bulkNames);
  givenFlag("dryRun", options.dryRun);
  givenSignal(options.signal);
  givenFunction("onProgress", options.onProgress);
  return options;
}

type Outcome = "changed" | "unchanged" | BulkReport["failures"][number];

/** The outcome for one run. An error that is not about the run, such as a lost connection, stops the command. */
async function outcomeOf(id: string, act: () => Promise<boolean>): Promise<Outcome> {
  try {
    return (await act()) ? "changed" : "unchanged";
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    const { code, message } = error;
    if (code === "EXECUTION_FINISHED" || code === "EXECUTION_NOT_FOUND") return "unchanged";
    if (originOf(code) !== "domain" && !isOfOneRun(code)) throw error;
    return { id, code, message };
  }
}

/** Transient and damage codes that still concern only one run. */
function isOfOneRun(code: ErrorCode): boolean {
  return code === "EXECUTION_RUNNING" || code === "CORRUPT_ROW";
}

function unreadable(id: string): Outcome {
  return {
    id,
    code: "CORRUPT_ROW",
    message: `Run ${id} is unreadable and was skipped. Inspect it with maintenance.check.`,
  };
}

const nothingDone: BulkReport = {
  matched: 0,
  changed: 0,
  unchanged: 0,
  failed: 0,
  failures: [],
};

/** Adds one outcome per run to a report; undefined where there was nothing to do. */
function added(report: BulkReport, outcomes: readonly (Outcome | undefined)[]): BulkReport {
  const failures = outcomes.filter((each) => typeof each === "object");
  const count = (kind: Outcome): number => outcomes.filter((each) => each === kind).length;
  return {
    matched: report.matched + outcomes.length,
    changed: report.changed + count("changed"),
    unchanged: report.unchanged + count("unchanged"),
    failed: report.failed + failures.length,
    failures: [...report.failures, ...failures].slice(0, failuresMax),
  };
}

/** Refuses a missing filter. All runs are selected by `{}`, so that an omission does not cancel everything. */
function refuseNoFilter(given: unknown): void {
  if (typeof given === "object" && given !== null) return;
  throw whichRuns("");
}

/** Refuses undefined conditions: a failed lookup must not select all runs either. */
function refuseUndefinedFilter(asked: RunFilter): void {
  const values: readonly unknown[] = Object.values(asked);
  if (values.length > 0 && values.every((each) => each === undefined))
    throw whichRuns(` The given ${Object.keys(asked)[0]} is undefined.`);
}

function whichRuns(found: string): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    `Choose the runs with a filter such as { function: "orders/fulfil" } or { tag: "eu" }, or {} for all.${found}`,
    { option: "filter" },
  );
}

function stopped(report: BulkReport, signal: AbortSignal): HoldfastError {
  const { matched, changed } = report;
  return new HoldfastError(
    "ABORTED",
    `The signal stopped the command after ${matched} runs, of which it changed ${changed}. Call it again to continue.`,
    { matched, changed },
    { cause: signal.reason },
  );
}
