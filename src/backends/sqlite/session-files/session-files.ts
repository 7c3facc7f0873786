import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { sha256Hex } from "../../../host/hash.ts";
import { isHoldfastError } from "../../../model/errors.ts";
import { sessionFileName } from "../../../model/session/file-name.ts";
import { parseSessionId } from "../../../model/ids/session-id.ts";
import type { SessionHandle } from "../../../model/session/session.ts";
import { givenInvalid, optionsOf } from "../../../model/shape.ts";
import { sessions } from "../../../stores/session/sessions.ts";
import type { Sessions } from "../../../stores/session/sessions.ts";
import { sessionContext, type SessionOptions } from "../../../stores/session/context.ts";
import { followSession, type SessionDraft } from "../../../stores/session/create.ts";
import { deleteSession } from "../../../stores/session/removal.ts";
import { loadDriver } from "../drivers/drivers.ts";
import { makeFolder } from "../file.ts";
import { openSqliteWith } from "../open.ts";
import { settingsOf } from "../options.ts";
import type { SqliteOptions, SqliteSeams } from "../options.ts";
import { removeLeftovers, takeAway, whileLocked } from "./session-file-lock.ts";
import type { LockOptions } from "./session-file-lock.ts";
import { markOf, raiseMark, readMark } from "./session-folder-mark.ts";
import type { SqliteDatabase } from "../sqlite-database.ts";

export interface SessionFilesOptions {
  /** Options for opening each file. */
  readonly sqlite?: SqliteOptions;
  /** Options of `sessions` in each file. */
  readonly sessions?: SessionOptions;
}

/** An open session in its own file. Other stores can use its database too. */
export interface SessionFile {
  readonly path: string;
  readonly database: SqliteDatabase;
  readonly session: SessionHandle;
  readonly sessions: Sessions;
  close(): Promise<void>;
}

/** One database file per session, in one folder. */
export interface SessionFiles {
  /**
   * The path of a session's file, whether it exists or not.
   * @throws HoldfastError `ID_MALFORMED`
   */
  path(id: string): string;
  /**
   * Creates and opens a session's file. Opens an existing file and keeps its meta. Creates folders
   * as needed.
   */
  create(id: string, meta?: SessionDraft): Promise<SessionFile>;
  /** Opens a session's file; undefined when there is none. */
  open(id: string): Promise<SessionFile | undefined>;
  /**
   * Deletes a session and its file; false when there was none. The session is marked as deleted
   * before the file is removed. So a handle that is open elsewhere is fenced: none of its writes is
   * acknowledged any more. A process that opens or creates the session during the deletion waits,
   * and then finds no file.
   * @throws HoldfastError `DATABASE_BUSY`, as `create` and `open`, when another process does not
   * finish with the file
   */
  delete(id: string): Promise<boolean>;
}

/**
 * Sessions as files, which can be handed over, copied or deleted one by one. In all other respects
 * they behave as in one database. The folder has one more file, `holdfast-sessions.last`. With it,
 * a recreated session begins with a generation and a fence above all that were deleted here,
 * independent of the clock. Of a file that was removed by hand only its first generation is known.
 * @example const files = sessionFiles("./sessions");
 */
export function sessionFiles(root: string, options: SessionFilesOptions = {}): SessionFiles {
  optionsOf(options, ["sqlite", "sessions"]);
  const folder = folderOf(root);
  const { driver: driverName, busyBudgetMs: waitMs } = settingsOf(options.sqlite ?? {});
  const path = (id: string): string => join(folder, sessionFileName(parseSessionId(id), sha256Hex));
  const lockOptions = (): LockOptions => ({
    driver: loadDriver(driverName),
    waitMs,
  });
  const locked = <T>(at: string, action: () => Promise<T>): Promise<T> =>
    whileLocked(at, lockOptions(), action);
  // The number is taken when a file is created, so that a file removed by hand counts too.
  const takenMark = (): Promise<number> =>
    locked(markOf(folder), async () => {
      const last = readMark(folder);
      raiseMark(folder, last + 1);
      return last;
    });
  const deleted = (at: string, id: string): Promise<true> =>
    deleteFile(at, id, options, () =>
      locked(markOf(folder), () => takeAway(at, lockOptions(), (last) => raiseMark(folder, last))),
    );
  return {
    path,
    async create(id, meta) {
      const at = path(id);
      await makeFolder(folder);
      const file = await locked(at, async () => {
        if (!existsSync(at)) removeLeftovers(at);
        return entered({ at, options }, {}, async (store, database) => {
          if ((await store.open(id)) === undefined) await follow(database, id, await takenMark());
          const { generation, id: name } = await store.create(id, meta);
          return { id: name, generation };
        });
      });
      if (file === undefined) throw new Error("A created session must exist.");
      return file;
    },
    async open(id) {
      const at = path(id);
      // Without a file there may be no folder for a lock either.
      if (!existsSync(at)) return undefined;
      return locked(at, () =>
        unlessGone(() => entered({ at, options }, { mustExist: true }, (store) => store.open(id))),
      );
    },
    async delete(id) {
      const at = path(id);
      if (!existsSync(at)) return false;
      const isDeleted = await locked(at, () => unlessGone(() => deleted(at, id)));
      return isDeleted ?? false;
    },
  };
}

/** @throws HoldfastError `OPTION_INVALID` */
function folderOf(root: string): string {
  if (typeof root === "string" && root !== "" && !root.includes("\0")) return resolve(root);
  throw givenInvalid("root", "the path of a folder", root);
}

/** Opens a file and finds or creates its session. Closes the file when there is none. */
async function entered(
  file: { readonly at: string; readonly options: SessionFilesOptions },
  seams: SqliteSeams,
  enter: (store: Sessions, database: SqliteDatabase) => Promise<SessionHandle | undefined>,
): Promise<SessionFile | undefined> {
  const { at, options } = file;
  const database = await openSqliteWith(at, options.sqlite ?? {}, seams);
  try {
    const store = sessions(database, options.sessions);
    const session = await enter(store, database);
    if (session !== undefined)
      return {
        path: at,
        database,
        session,
        sessions: store,
        close: () => database.close(),
      };
  } catch (error) {
    await database.close();
    throw error;
  }
  await database.close();
  return undefined;
}

function follow(database: SqliteDatabase, id: string, last: number): Promise<void> {
  const input = { id: parseSessionId(id), last, at: database.clock.now() };
  return database.write(followSession(sessionContext(database)), input);
}

/**
 * Writes the tombstone, then removes the file. A process that had it open may create a new
 * generation in between, which gets its own tombstone.
 */
async function deleteFile(
  path: string,
  id: string,
  { sqlite = {}, sessions: given }: SessionFilesOptions,
  takenAway: () => Promise<boolean>,
): Promise<true> {
  const session = { id: parseSessionId(id) };
  do {
    const database = await openSqliteWith(path, sqlite, { mustExist: true });
    try {
      const context = sessionContext(database, given);
      const at = context.clock.now();
      await database.write(deleteSession(context), { session, at });
    } finally {
      await database.close();
    }
  } while (!(await takenAway()));
  removeLeftovers(path);
  return true;
}

/** Returns undefined when the file disappeared before it was opened. */
async function unlessGone<T>(opening: () => Promise<T>): Promise<T | undefined> {
  try {
    return await opening();
  } catch (error) {
    if (isHoldfastError(error) && error.code === "DATABASE_NOT_FOUND") return undefined;
    throw error;
  }
}
