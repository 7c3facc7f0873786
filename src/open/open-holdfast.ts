import { openPostgresWith, type PostgresSeams } from "../backends/postgres/open.ts";
import type { PostgresOptions } from "../backends/postgres/options.ts";
import { openSqliteWith } from "../backends/sqlite/open.ts";
import type { SqliteOptions, SqliteSeams } from "../backends/sqlite/options.ts";
import type { Clock } from "../model/time/clock.ts";
import { givenFunction, givenInvalid, givenObject, optionsOf } from "../model/shape.ts";
import type { Database } from "../sql/database.ts";
import { Drain } from "../runtime/drain.ts";
import { externalTokens } from "../runtime/client/external-tokens.ts";
import { holdfastOver, type Holdfast } from "../runtime/client/holdfast.ts";
import { LoopWatch } from "../runtime/loop-watch.ts";
import { Reports } from "../runtime/reports.ts";
import { RunningBodies } from "../runtime/running-bodies.ts";
import type { RuntimeContext } from "../runtime/runtime-context.ts";
import type { Notice, RuntimeEvent } from "../runtime/runtime-event.ts";
import { ParkedWaits } from "../runtime/client/parked-waits.ts";
import { processPlaces } from "../runtime/worker/process-places.ts";
import { RunStreams } from "../runtime/stream/run-stream.ts";
import { StreamWriter } from "../runtime/stream/stream-writer.ts";
import { UnservedFunctions } from "../runtime/client/unserved.ts";
import { storePages } from "../runtime/client/store-pages.ts";
import { checkStoreOptions, type StoreOptions } from "../stores/context.ts";
import { executionContext } from "../stores/execution/context.ts";

export interface HoldfastOptions {
  /** Options of the file, when a path is given. */
  readonly sqlite?: SqliteOptions;
  /** Options of the connection, when a URL is given. */
  readonly postgres?: PostgresOptions;
  /** Transforms values on their way to the database and back: encryption. */
  readonly payload?: NonNullable<StoreOptions["payload"]>;
  /** The size limit of a value. Defaults to 2 MiB of text. */
  readonly valueLimits?: NonNullable<StoreOptions["valueLimits"]>;
  /**
   * The log hook. Receives the events of the runtime and of `ctx.log`, with ids and names separate
   * from the text. By default, warnings and errors are emitted as process warnings.
   * @example onEvent: ({ level, message, details, data }) => logger[level]({ ...details, data },
   * message)
   */
  readonly onEvent?: (event: RuntimeEvent) => void;
}

const optionNames = [
  "sqlite",
  "postgres",
  "payload",
  "valueLimits",
  "onEvent",
] as const satisfies readonly (keyof HoldfastOptions)[];

/**
 * Opens a database for runs: a SQLite file, `":memory:"`, or a Postgres URL.
 * Close it when the program ends.
 *
 * @throws HoldfastError with the codes of docs/errors.md under "Opening".
 * @example const holdfast = await openHoldfast("./orders.db");
 */
export async function openHoldfast(
  pathOrUrl: string,
  options?: HoldfastOptions,
): Promise<Holdfast> {
  const given = optionsOf<HoldfastOptions>(options, optionNames);
  const { sqlite = {}, postgres = {}, onEvent } = given;
  // Checks every option before anything is created, also the options that the other database uses.
  givenObject("sqlite", sqlite);
  givenObject("postgres", postgres);
  givenFunction("onEvent", onEvent);
  const stores = storeOptionsOf(given);
  checkStoreOptions(stores);
  if (typeof pathOrUrl !== "string")
    throw givenInvalid(
      "the database",
      'a path such as "./app.db", ":memory:" or a URL such as "postgres://…"',
      pathOrUrl,
    );
  const database: Database = isPostgresUrl(pathOrUrl)
    ? await openPostgresWith(pathOrUrl, postgres, warningsTo(onEvent))
    : await openSqliteWith(pathOrUrl, sqlite, warningsTo(onEvent));
  try {
    return await holdfastOn(database, stores, onEvent);
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Turns warnings of the database into events when the caller listens for events. */
function warningsTo(
  onEvent: HoldfastOptions["onEvent"],
): Pick<PostgresSeams & SqliteSeams, "onWarning"> {
  if (onEvent === undefined) return {};
  const say = guarded(onEvent);
  return {
    onWarning: ({ code, message }) =>
      say({ level: "warn", message, details: { code }, source: "runtime" }),
  };
}

/** The part of the options that concerns the stores. */
export function storeOptionsOf({ payload, valueLimits }: HoldfastOptions): StoreOptions {
  return {
    ...(payload !== undefined && { payload }),
    ...(valueLimits !== undefined && { valueLimits }),
  };
}

/** Builds a Holdfast over an open database. */
export async function holdfastOn(
  database: Database,
  options: StoreOptions = {},
  onEvent: (event: RuntimeEvent) => void = asWarning,
): Promise<Holdfast> {
  const context = await runtimeContext(database, options, onEvent);
  return holdfastOver(context, (timeout) => database.close({ timeout }));
}

/** State that clients and workers of a database share. */
export async function runtimeContext(
  database: Database,
  options: StoreOptions,
  onEvent: (event: RuntimeEvent) => void,
  background: Clock = options.clock ?? database.clock,
  scheduling: Clock = background,
): Promise<RuntimeContext> {
  const say = guarded(onEvent);
  const store = executionContext(database, options);
  const { clock } = store;
  const tell = (notice: Notice): void => say({ ...notice, source: "runtime" });
  const pages = storePages(database, options);
  const { executions } = pages;
  return {
    database,
    store,
    pages,
    payload: options.payload?.name ?? null,
    clock,
    background,
    scheduling,
    bodies: new RunningBodies(),
    ending: { by: undefined },
    drain: new Drain(undefined, new LoopWatch(tell)),
    tokens: await externalTokens(database, options),
    say,
    tell,
    reports: new Reports({ tell, clock: background, values: store.values }),
    unserved: new UnservedFunctions({
      database,
      store,
      clock: background,
      tell,
    }),
    places: processPlaces,
    output: new StreamWriter({ store, clock, tell }),
    streams: new RunStreams({ store, assertThere: (id) => executions.get(id) }),
    parked: new ParkedWaits({
      database,
      store,
      executions,
      clock: background,
      tell,
    }),
  };
}

export function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//i.test(text);
}

/** Wraps the user's hook so that its failure stops nothing. */
function guarded(onEvent: (event: RuntimeEvent) => unknown): (event: RuntimeEvent) => void {
  const failed = (error: unknown): void =>
    process.emitWarning(`onEvent failed: ${String(error)}`, {
      type: "HoldfastWarning",
    });
  return (event) => {
    try {
      const done = onEvent(event);
      if (done instanceof Promise) done.catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}

/** Emits warnings and errors as process warnings; drops everything else. */
export function asWarning({ level, message }: RuntimeEvent): void {
  if (level === "warn" || level === "error")
    process.emitWarning(message, { type: "HoldfastWarning" });
}
