import type { Warning } from "../../sql/database.ts";
import { Connection } from "./connection.ts";
import type { ConnectionEvents, Target } from "./connection.ts";
import { loadDriver } from "./driver.ts";
import type { Settings } from "./options.ts";
import { TemplateTexts } from "./qualified.ts";
import { sessionTexts, type SessionTexts } from "./session-texts.ts";
import { Inquiry } from "./silence/inquiry.ts";

/** A first connection, and a function that opens more like it. */
export interface Connected {
  readonly connection: Connection;
  readonly open: (events?: ConnectionEvents, signal?: AbortSignal) => Promise<Connection>;
  readonly inquiry: Inquiry;
  /** False behind a pooler that lends sessions: settings made on one are unknown to the next. */
  readonly hasSessions: boolean;
}

/**
 * Connects. Unless the caller chose, it goes without prepared statements when a pooler turns out to
 * be in between.
 */
export async function connect(url: string, settings: Settings): Promise<Connected> {
  const { answerMs: timeoutMs, warn } = settings;
  const bare = {
    driver: await loadDriver(),
    url,
    templates: new TemplateTexts(settings.schema),
  };
  const lent = { ...bare, prepare: false, texts: sessionTexts({ ...settings, prepare: false }) };
  const inquiry = new Inquiry((signal) => Connection.open(lent, {}, signal), timeoutMs);
  const answers = { timeoutMs, inquiry, warn };
  const own = {
    ...bare,
    prepare: true,
    texts: sessionTexts({ ...settings, prepare: true }),
    answers,
  };
  const { prepare } = settings;
  const probed = prepare === undefined ? await connectOwn(own, lent.texts) : undefined;
  if (prepare === undefined && probed === undefined) warn(poolerFound);
  const target = (prepare ?? probed !== undefined) ? own : { ...lent, answers };
  return connectedAs(target, probed ?? (await Connection.open(target)), inquiry);
}

/**
 * Opens a connection, or returns undefined behind a pooler, whose sessions are shared and must not
 * get our settings.
 */
async function connectOwn(own: Target, texts: SessionTexts): Promise<Connection | undefined> {
  const connection = await Connection.open({ ...own, texts });
  try {
    if (!connection.isPooled) {
      await connection.introduce(own.texts);
      return connection;
    }
  } catch (error) {
    await connection.end();
    throw error;
  }
  await connection.end();
  return undefined;
}

function connectedAs(target: Target, connection: Connection, inquiry: Inquiry): Connected {
  return {
    connection,
    open: (events, signal) => Connection.open(target, events, signal),
    inquiry,
    hasSessions: target.prepare || !connection.isPooled,
  };
}

const poolerFound: Warning = {
  code: "POOLER_FOUND",
  message:
    "A pooler answers in place of the Postgres server, so prepared statements and session settings are not used. " +
    "Open with `prepare: false` to say that this is right, or with `prepare: true` if each of its connections keeps a session of its own.",
};
