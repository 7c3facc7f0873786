import { systemEntropy } from "../../host/entropy.ts";
import { sha256Hex } from "../../host/hash.ts";
import { keepAlive } from "../../host/timers.ts";
import type { Database, Durability, Warning } from "../../sql/database.ts";
import { rememberPayloadMark } from "../../stores/payload-seal.ts";
import { connect } from "./connect.ts";
import type { Connected } from "./connect.ts";
import type { Connection } from "./connection.ts";
import { PostgresDatabase } from "./database.ts";
import { checkUrl } from "./driver.ts";
import { settingsOf } from "./options.ts";
import type { PostgresOptions, Settings } from "./options.ts";
import { lookAtSchema, prepareSchema, requireSchema } from "./schema.ts";
import { ServerClock } from "./server-clock.ts";

/**
 * Opens a Postgres database, creating our schema as needed. Any number of processes may open it.
 * @throws HoldfastError with the codes of docs/errors.md under "Opening".
 * @example const database = await openPostgres("postgres://localhost/app");
 */
export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<Database> {
  return openPostgresWith(url, options, {});
}

/** Internal settings of an open. */
export interface PostgresSeams {
  /**
   * Refuses missing or older tables with `SCHEMA_OUTDATED` instead of migrating. A tool that only
   * inspects must not migrate under the app.
   */
  readonly mustBeCurrent?: boolean;
  /** Receives warnings when the options have no listener. */
  readonly onWarning?: (warning: Warning) => void;
}

export async function openPostgresWith(
  url: string,
  options: PostgresOptions,
  seams: PostgresSeams,
): Promise<Database> {
  const { onWarning = seams.onWarning } = options;
  const settings = settingsOf(options, onWarning);
  checkUrl(url);
  const release = keepAlive();
  try {
    return await openAt(url, settings, seams);
  } finally {
    release();
  }
}

async function openAt(url: string, settings: Settings, seams: PostgresSeams): Promise<Database> {
  const connected = await connect(url, settings);
  try {
    return await openOn(connected, settings, seams);
  } catch (error) {
    connected.inquiry.close();
    await connected.connection.end();
    throw error;
  }
}

/**
 * Samples of the server's time. Each is a round trip, and more follow once the database is open.
 */
const samplesWhileOpening = 2;

/**
 * Opens on a connection. After logging in, an existing and current schema costs four round trips
 * (settings, this look, the time twice), and others that are not awaited. One more detects a
 * pooler, unless the caller chose whether to prepare.
 */
async function openOn(
  connected: Connected,
  settings: Settings,
  { mustBeCurrent = false }: PostgresSeams,
): Promise<Database> {
  const { connection } = connected;
  const found = await lookAtSchema(connection, settings.schema);
  const durability = durabilityOf(
    settings,
    found === undefined ? await fsyncOf(connection) : found.fsync,
  );
  const serverClock = settings.clock === undefined ? new ServerClock(settings.warn) : undefined;
  await serverClock?.measure(connection, samplesWhileOpening);
  const clock = settings.clock ?? serverClock;
  if (clock === undefined) throw new Error("There is always a clock.");
  if (found?.isCurrent !== true)
    await (mustBeCurrent ? requireSchema : prepareSchema)(connection, settings.schema, clock.now());
  const database = new PostgresDatabase({
    ...connected,
    settings,
    durability,
    clock,
    serverClock,
    channel: `holdfast_${sha256Hex(settings.schema).slice(0, 16)}`,
    instance: Buffer.from(systemEntropy.bytes(8)).toString("hex"),
  });
  rememberPayloadMark(database, found?.payloadMark);
  return database;
}

async function fsyncOf(connection: Connection): Promise<string | null> {
  const [found] = await connection.ask("SELECT current_setting('fsync', true) AS fsync");
  return (found as { readonly fsync: string | null }).fsync;
}

/** The durability of an acknowledgement, which depends on the server's fsync. */
function durabilityOf({ durability, warn }: Settings, fsync: string | null): Durability {
  if (durability === "normal" || fsync !== "off") return durability;
  warn({
    code: "FSYNC_OFF",
    message:
      "The Postgres server runs with fsync = off: when its machine fails, acknowledged writes may be lost and the database damaged. " +
      "Turn it on, except for tests.",
  });
  return "normal";
}
