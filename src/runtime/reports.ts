import { realSoon } from "../host/timers.ts";
import type { ExecutionEvent, ResultKind } from "../model/execution/event.ts";
import { splitToParts, type ExecutionId } from "../model/ids/execution-id.ts";
import type { ExecutionResult } from "../model/execution/result.ts";
import type { Clock } from "../model/time/clock.ts";
import { spokenDuration } from "../model/time/spoken.ts";
import type { StoredError } from "../model/values/stored-error.ts";
import type { ExecutionContext } from "../stores/execution/context.ts";
import { placeOf, spokenPlace } from "./failures.ts";
import type { Notice } from "./runtime-event.ts";

/** The runs of one function, as this process has started, ended and attempted them. */
interface FunctionStats {
  /** Runs that this process has created: by `start`, from code of runs, and by schedules. */
  readonly started: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly timedOut: number;
  readonly parked: number;
  /** Attempts of steps, transactions and activities that failed and are retried. */
  readonly failedAttempts: number;
  /** Messages that ended runs had not received. */
  readonly unread: number;
}

/** The figures of `stats()`, counted since this process opened the database. */
export interface HoldfastStats {
  /**
   * By function: of the first 1,000 that occur. All others are counted together, as `"*"`. An end
   * is counted by the process that records it.
   */
  readonly functions: Readonly<Record<string, FunctionStats>>;
}

/** A run as reports name it. */
export interface ReportedRun {
  readonly id: ExecutionId;
  readonly function: string;
}

/** A failed attempt that is retried. */
export interface FailedAttempt {
  /** The name of the step or transaction; undefined for an activity, or a workflow itself. */
  readonly step?: string;
  readonly attempt?: number;
  readonly retryAt: number;
  readonly error: StoredError | undefined;
}

type Finished = Extract<ExecutionEvent, { readonly kind: "finished" }>;

interface ReportsParts {
  readonly tell: (notice: Notice) => void;
  readonly clock: Clock;
  readonly values: ExecutionContext["values"];
}

type Level = "warn" | "error";

const functionsMax = 1_000;
const others = "*";
const perSecondMax = 20;
const secondMs = 1_000;
/** An error in a message; its details have the whole text. */
const charactersMax = 400;

/** The most names of signals in one report. */
const namesMax = 5;

/**
 * Counts runs by function, and reports failed attempts, failed and parked runs, and messages that
 * were not received. A burst of failures must not become a burst of reports: each function has 20
 * a second for each level, and one more that says how many were left out. The user's handler is
 * called when no code of a run is on the stack, so that a slow one is not blamed on a run.
 */
export class Reports {
  readonly #parts: ReportsParts;
  readonly #functions = new Map<string, Counted>();
  #waiting: Notice[] = [];

  constructor(parts: ReportsParts) {
    this.#parts = parts;
  }

  get stats(): HoldfastStats {
    return {
      functions: Object.fromEntries(
        Array.from(this.#functions, ([name, { counts }]) => [name, { ...counts }]),
      ),
    };
  }

  started(name: string): void {
    this.#of(name).counts.started += 1;
  }

  attemptFailed(run: ReportedRun, { step, attempt, retryAt, error }: FailedAttempt): void {
    this.#of(run.function).counts.failedAttempts += 1;
    const { id, function: name } = run;
    const subject = step === undefined ? spokenRun(run) : `Step "${step}" of run ${id} of ${name}`;
    const number = attempt === undefined ? "" : ` in attempt ${attempt}`;
    const pause = spokenDuration(Math.max(0, retryAt - this.#parts.clock.now()));
    this.#report("warn", run, `${subject} failed${number}, and is retried in ${pause}`, {
      kind: "attemptFailed",
      step,
      attempt,
      retryAt,
      error,
    });
  }

  /** Reports an end, unless it is a success or was asked for. `names` are those of messages left. */
  ended(
    run: ReportedRun,
    { resultKind, result }: Pick<Finished, "resultKind" | "result">,
    unread: number = 0,
    names: readonly string[] = [],
  ): void {
    this.endedAs(run, resultKind, () => this.#read(result));
    if (unread > 0) this.unread(run, unread, names);
  }

  endedAs(run: ReportedRun, kind: ResultKind, read: () => ExecutionResult | undefined): void {
    this.#of(run.function).counts[kind] += 1;
    if (kind === "completed" || kind === "cancelled") return;
    if (kind === "timedOut")
      return this.#report("error", run, `${spokenRun(run)} timed out.`, { kind: "runTimedOut" });
    const result = read();
    const error = result?.kind === "failed" ? result.error : undefined;
    const at = error && placeOf(error);
    this.#report("error", run, `${spokenRun(run)} failed${spokenPlace(at)}`, {
      kind: "runFailed",
      ...at,
      error,
    });
  }

  parked(
    run: ReportedRun,
    { code, reason, cause }: { readonly code: string; readonly reason: string; cause?: string },
  ): void {
    this.#of(run.function).counts.parked += 1;
    this.#report("error", run, reason, { kind: "runParked", code, cause });
  }

  /** Reports a run that is cancelled because its workers kept dying. Its end is counted by itself. */
  convicted(run: ReportedRun, reason: string): void {
    const code = "RUN_KEEPS_KILLING_WORKERS";
    this.#report("error", run, reason, { kind: "runConvicted", code });
  }

  unread(run: ReportedRun, unread: number, names: readonly string[] = []): void {
    this.#of(run.function).counts.unread += unread;
    const messages = unread === 1 ? "1 message" : `${unread} messages`;
    this.#report(
      "warn",
      run,
      `${spokenRun(run)} ended with ${messages} that its code had not received${spokenNames(names)}.`,
      { kind: "messagesUnread", unread },
    );
  }

  /** Reports what is still to be said: the process may end now. */
  close(): void {
    for (const counted of this.#functions.values())
      for (const window of Object.values(counted.windows)) window.end();
    this.#flush();
  }

  #of(name: string): Counted {
    const known = this.#functions.get(name);
    if (known !== undefined) return known;
    const isFull = this.#functions.size >= functionsMax && name !== others;
    if (isFull) return this.#of(others);
    const made = newCounted((level) => this.#windowOf(name, level));
    this.#functions.set(name, made);
    return made;
  }

  #windowOf(name: string, level: Level): ReportWindow {
    return new ReportWindow(this.#parts.clock, (leftOut) =>
      this.#queue({
        level,
        message: `${leftOut} more reports of ${name} were left out within a second.`,
        details: { kind: "reportsLeftOut", function: name, leftOut },
      }),
    );
  }

  #report(
    level: Level,
    run: ReportedRun,
    text: string,
    {
      error,
      ...rest
    }: Readonly<Record<string, unknown>> & { readonly error?: StoredError | undefined },
  ): void {
    if (!this.#of(run.function).windows[level].lets()) return;
    const { kind, ...named } = rest;
    const parent = splitToParts(run.id)?.parent;
    const details: Record<string, unknown> = { kind, id: run.id, function: run.function };
    const shown = {
      parent,
      ...named,
      error: error && { name: error.name, message: error.message },
    };
    for (const [name, value] of Object.entries(shown))
      if (value !== undefined) details[name] = value;
    const message = error === undefined ? text : `${text}: ${spokenLine(error)}`;
    this.#queue({ level, message, details });
  }

  /** Undefined when it cannot be read, as while a payload codec fails. */
  #read(result: Finished["result"]): ExecutionResult | undefined {
    try {
      return this.#parts.values.readResult(result, "failed");
    } catch {
      return undefined;
    }
  }

  #queue(notice: Notice): void {
    this.#waiting.push(notice);
    if (this.#waiting.length === 1) realSoon(() => this.#flush());
  }

  #flush(): void {
    const notices = this.#waiting;
    this.#waiting = [];
    for (const notice of notices) this.#parts.tell(notice);
  }
}

interface Counted {
  readonly counts: { -readonly [Name in keyof FunctionStats]: number };
  readonly windows: Readonly<Record<Level, ReportWindow>>;
}

function newCounted(windowOf: (level: Level) => ReportWindow): Counted {
  return {
    counts: {
      started: 0,
      completed: 0,
      failed: 0,
      cancelled: 0,
      timedOut: 0,
      parked: 0,
      failedAttempts: 0,
      unread: 0,
    },
    windows: { warn: windowOf("warn"), error: windowOf("error") },
  };
}

/** The reports of one function and level within a second. */
class ReportWindow {
  readonly #clock: Clock;
  readonly #tellLeftOut: (count: number) => void;
  #from = 0;
  #count = 0;
  #leftOut = 0;
  #cancel: () => void = () => undefined;

  constructor(clock: Clock, tellLeftOut: (count: number) => void) {
    this.#clock = clock;
    this.#tellLeftOut = tellLeftOut;
  }

  /** True if one more report may be made now. Otherwise it is counted. */
  lets(): boolean {
    const now = this.#clock.now();
    // A clock that was set back begins another second.
    if (now >= this.#from + secondMs || now < this.#from) {
      this.end();
      this.#from = now;
    }
    if (this.#count < perSecondMax) {
      this.#count += 1;
      return true;
    }
    this.#leftOut += 1;
    if (this.#leftOut === 1)
      this.#cancel = this.#clock.wakeAt(this.#from + secondMs, () => this.end());
    return false;
  }

  /** Ends the second, and says how many reports it left out. */
  end(): void {
    const leftOut = this.#leftOut;
    this.#cancel();
    this.#count = 0;
    this.#leftOut = 0;
    if (leftOut > 0) this.#tellLeftOut(leftOut);
  }
}

function spokenRun({ id, function: name }: ReportedRun): string {
  return `Run ${id} of ${name}`;
}

/** One line: a log may have one for each report. */
function spokenLine({ name, message }: StoredError): string {
  const line = `${name}: ${message}`.replaceAll(/\s+/g, " ").trim();
  return line.length <= charactersMax ? line : `${line.slice(0, charactersMax)}…`;
}

function spokenNames(names: readonly string[]): string {
  const known = [...new Set(names)];
  if (known.length === 0) return "";
  return ` (${known.slice(0, namesMax).join(", ")}${known.length > namesMax ? ", …" : ""})`;
}
