import { systemEntropy } from "../../host/entropy.ts";
import { sha256Hex } from "../../host/hash.ts";
import { keepAlive } from "../../host/timers.ts";
import type { Database, Durability } from "../../sql/database.ts";
import { Connection } from "./connection.ts";
import type { Target } from "./connection.ts";
import { PostgresDatabase } from "./database.ts";
import { checkUrl, loadDriver } from "./driver.ts";
import { settingsOf } from "./options.ts";
import type { PostgresOptions, Settings } from "./options.ts";
import { TemplateTexts } from "./qualified.ts";
import { lookAtSchema, prepareSchema, requireSchema } from "./schema.ts";
import { ServerClock } from "./server-clock.ts";
import { sessionTexts } from "./session-texts.ts";

/**
 * Opens a Postgres database, creating our schema as needed. Any number of
 * processes may open it.
 * @throws HoldfastError with the codes of docs/errors.md under "Opening".
 * @example const database = await openPostgres("postgres://localhost/app");
 */
export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<Database> {
  return openPostgresWith(url, options, {});
}

/** What is asked of a database besides. */
export interface PostgresSeams {
  /** Tables that are missing or older are refused with `SCHEMA_OUTDATED`, not made: who only looks in must not migrate under the app. */
  readonly mustBeCurrent?: boolean;
}

export async function openPostgresWith(
  url: string,
  options: PostgresOptions,
  seams: PostgresSeams,
): Promise<Database> {
  const settings = settingsOf(options);
  checkUrl(url);
  const release = keepAlive();
  try {
    return await openAt(url, settings, seams);
  } finally {
    release();
  }
}

async function openAt(url: string, settings: Settings, seams: PostgresSeams): Promise<Database> {
  const target: Target = {
    driver: await loadDriver(),
    url,
    prepare: settings.prepare,
    texts: sessionTexts(settings),
    templates: new TemplateTexts(settings.schema),
  };
  const connection = await Connection.open(target);
  try {
    return await openOn(connection, target, settings, seams);
  } catch (error) {
    await connection.end();
    throw error;
  }
}

/** Of the time; each is a round trip, and more are taken once the database is open. */
const samplesWhileOpening = 2;

/** After logging in, a schema that is there and current costs four round trips (settings, this look, the time twice) and a fifth that nobody waits for. */
async function openOn(
  connection: Connection,
  target: Target,
  settings: Settings,
  { mustBeCurrent = false }: PostgresSeams,
): Promise<Database> {
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
  return new PostgresDatabase({
    open: (events, signal) => Connection.open(target, events, signal),
    connection,
    settings,
    durability,
    clock,
    serverClock,
    channel: `holdfast_${sha256Hex(settings.schema).slice(0, 16)}`,
    instance: Buffer.from(systemEntropy.bytes(8)).toString("hex"),
  });
}

async function fsyncOf(connection: Connection): Promise<string | null> {
  const [found] = await connection.ask("SELECT current_setting('fsync', true) AS fsync");
  return (found as { readonly fsync: string | null }).fsync;
}

/** What an acknowledgement is worth is for the server to say. */
function durabilityOf({ durability, warn }: Settings, fsync: string | null): Durability {
  if (durability === "normal" || fsync !== "off") return durability;
  warn({
    code: "FSYNC_OFF",
    message:
      "The Postgres server runs with fsync = off: acknowledged writes may be lost, and the database damaged, when its machine fails. " +
      "Switch it on for anything but tests.",
  });
  return "normal";
}
