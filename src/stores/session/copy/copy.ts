import { verifiedBlob } from "../../../model/blob.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import { isHoldfastError } from "../../../model/errors.ts";
import { tellProgress } from "../../../model/shape.ts";
import { parseSessionId } from "../../../model/ids/session-id.ts";
import type { SessionHandle } from "../../../model/session/session.ts";
import { descriptionOf, type Attachment } from "../../attachment/attachment-row.ts";
import { attachments, type Attachments } from "../../attachment/attachments.ts";
import type { Database } from "../../../sql/database.ts";
import {
  beginCopy,
  copyDisturbed,
  endCopy,
  findCopy,
  giveUpCopy,
  nodesIn,
  touchCopy,
  turnsIn,
  usageIn,
} from "./copy-in.ts";
import {
  nodesOut,
  pictureSession,
  turnsOut,
  usageOut,
  type SessionPicture,
  type TurnRow,
  type UsageRow,
} from "./copy-out.ts";
import type { Page } from "../../list.ts";
import { takePayloadMark } from "../../payload-seal.ts";
import type { CreatedSession } from "../create.ts";
import type { GraphPage } from "../graph/graph.ts";
import { sessionContext, type SessionContext } from "../context.ts";
import { reclaimGivenUp } from "../removal.ts";
import { ImportedName, sessionNamed, type SessionName } from "../../session-name.ts";
import type { SessionRef } from "../../session-row.ts";
import { blobMissing } from "../state-row.ts";

/** One side of a copy: a database, and its attachments when they are not in it. */
export interface CopySide {
  readonly database: Database;
  readonly attachments?: Attachments | undefined;
}

export interface CopyOptions {
  /** The id in the target; defaults to the source's. */
  readonly id?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?:
    ((soFar: { readonly nodes: number; readonly of: number }) => void) | undefined;
}

const rowsPerPage = 500;
const attachmentsPerPage = 100;

/**
 * Copies a session as of one moment into another database: graph, checkpoint, usage, receipts and
 * committed attachments, but not its queue and lease. A fork becomes complete: it gets its own
 * nodes. Nothing is locked during the copy. The copy becomes visible at the end, all at once. A
 * repeated copy of the same source in the same state returns the first copy.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `SESSION_EXISTS`,
 *   `TRANSACTION_CONFLICT`.
 */
export async function copySession(
  from: CopySide,
  source: SessionName,
  to: CopySide,
  options: CopyOptions = {},
): Promise<CreatedSession> {
  const picture = await from.database.read(
    pictureSession(sessionContext(from.database)),
    sessionNamed(source),
    { signal: options.signal },
  );
  const { id: sourceId, generation } = picture.head;
  const copy = new Copy(from, { id: sourceId, generation }, to, options);
  return copy.run(picture, parseSessionId(options.id ?? sourceId));
}

class Copy {
  readonly #from: CopySide;
  readonly #source: SessionRef;
  readonly #to: CopySide;
  readonly #options: CopyOptions;
  /** The contexts of the side that is read and of the side that is written. */
  readonly #out: SessionContext;
  readonly #in: SessionContext;

  constructor(from: CopySide, source: SessionRef, to: CopySide, options: CopyOptions) {
    this.#from = from;
    this.#source = source;
    this.#to = to;
    this.#options = options;
    this.#out = sessionContext(from.database);
    this.#in = sessionContext(to.database);
  }

  async run(picture: SessionPicture, id: SessionHandle["id"]): Promise<CreatedSession> {
    const { database } = this.#to;
    const origin = originOf(database, picture);
    const before = await database.read(findCopy(this.#in), { id, origin }, this.#wait);
    if (before !== undefined) return { ...before, existed: true };
    verifyBlobs(database, picture);
    await takePayloadMark(this.#from.database, database);
    const generation = -1 - randomNumber(database);
    const { key } = await database.write(
      beginCopy(this.#in),
      { id, generation, at: this.#now, picture },
      this.#wait,
    );
    try {
      await this.#nodes(key, picture);
      const usage = await this.#usage(key, picture);
      const turns = await this.#turns(key, picture);
      const name = new ImportedName(id, generation);
      const files = await this.#attachments(key, name);
      const counted = { usage, turns, attachments: files };
      const made = await database.write(
        endCopy(this.#in),
        { session: key, id, at: this.#now, origin, picture, ...counted },
        this.#wait,
      );
      return { ...made, existed: false };
    } catch (error) {
      await this.#giveUp(key);
      // A concurrent copy of the same source came first.
      const other =
        isHoldfastError(error) && error.code === "SESSION_EXISTS"
          ? await database.read(findCopy(this.#in), { id, origin })
          : undefined;
      if (other !== undefined) return { ...other, existed: true };
      throw error;
    }
  }

  /** Removes an abandoned copy. If the database fails here, `reclaim` removes the rest later. */
  async #giveUp(session: number): Promise<void> {
    const { database } = this.#to;
    try {
      await database.write(giveUpCopy(this.#in), { session });
      await reclaimGivenUp(this.#in, session);
    } catch {
      // The first failure is the one to report.
    }
  }

  get #now(): number {
    return this.#to.database.clock.now();
  }

  get #wait(): { readonly signal: AbortSignal | undefined } {
    return { signal: this.#options.signal };
  }

  async #nodes(key: number, picture: SessionPicture): Promise<void> {
    const { nodesUntil: until, nodeCount: of } = picture;
    let after = 0;
    let copied = 0;
    for (;;) {
      const page: GraphPage = await this.#from.database.read(
        nodesOut(this.#out),
        { session: this.#source, after, until, limit: rowsPerPage },
        this.#wait,
      );
      if (page.nodes.length > 0)
        await this.#to.database.write(
          nodesIn(this.#in),
          { session: key, at: this.#now, rows: page.nodes },
          this.#wait,
        );
      copied += page.nodes.length;
      tellProgress(this.#options.onProgress, { nodes: copied, of });
      if (page.next !== undefined) {
        after = page.next;
        continue;
      }
      // Some nodes were removed in between, so the rows are no longer of one moment.
      if (copied !== of) throw copyDisturbed();
      return;
    }
  }

  async #usage(key: number, picture: SessionPicture): Promise<number> {
    let after = 0;
    let copied = 0;
    for (;;) {
      const page: readonly UsageRow[] = await this.#from.database.read(
        usageOut(this.#out),
        {
          session: this.#source,
          after,
          until: picture.usageUntil,
          limit: rowsPerPage,
        },
        this.#wait,
      );
      const last = page.at(-1);
      if (last === undefined) return copied;
      await this.#to.database.write(
        usageIn(this.#in),
        { session: key, at: this.#now, rows: page },
        this.#wait,
      );
      copied += page.length;
      after = last.key;
    }
  }

  async #turns(key: number, { head }: SessionPicture): Promise<number> {
    let after = "";
    let copied = 0;
    for (;;) {
      const page: readonly TurnRow[] = await this.#from.database.read(
        turnsOut(this.#out),
        { session: this.#source, after, limit: rowsPerPage },
        this.#wait,
      );
      const last = page.at(-1);
      if (last === undefined) return copied;
      const known = page.filter((turn) => revisionOf(head.key, turn) <= head.revision);
      await this.#to.database.write(
        turnsIn(this.#in),
        { session: key, at: this.#now, rows: known },
        this.#wait,
      );
      copied += known.length;
      after = last.turn;
    }
  }

  /** Copies attachments and returns their number. Each is committed before the next one. */
  async #attachments(session: number, name: ImportedName): Promise<number> {
    const from = this.#from.attachments ?? attachments(this.#from.database);
    const to = this.#to.attachments ?? attachments(this.#to.database);
    let after: string | undefined;
    let copied = 0;
    do {
      const { items, next }: Page<Attachment> = await from.list(this.#source, {
        limit: attachmentsPerPage,
        ...(after !== undefined && { after }),
      });
      after = next;
      for (const { id, committedAt } of items) {
        if (committedAt === undefined) continue;
        const { attachment, content } = await from.get(this.#source, id);
        await this.#to.database.write(touchCopy(this.#in), { session, at: this.#now }, this.#wait);
        await to.put(name, content, descriptionOf(attachment));
        const missing = await to.commit(name, [id]);
        if (missing.length > 0) throw copyDisturbed();
        copied += 1;
      }
    } while (after !== undefined);
    return copied;
  }
}

/**
 * Identifies a source in one state: its head, with the hashes of all mutable state and of the turn
 * at its leaf.
 */
function originOf({ sha256Hex }: Database, picture: SessionPicture): string {
  const { head, components, frames } = picture;
  const facts = [
    [head.id, head.generation, head.created_at, head.active_at],
    [head.revision, head.leaf_id, head.node_count, picture.leafTurn],
    [head.config, head.current_frame],
    components.map(({ name, version, hash }) => [name, version, hash]),
    frames.map(({ id, hash, blob }) => [id, hash, blob]),
  ];
  return sha256Hex(`holdfast:session-origin:1:${JSON.stringify(facts)}`);
}

/**
 * Verifies the blobs. Damaged content must not enter this database, where other rows may refer to
 * it.
 * @throws HoldfastError `CORRUPT_ROW`
 */
function verifyBlobs({ bytes }: Database, { frames, components, blobs }: SessionPicture): void {
  const there = new Set(blobs.map(({ hash }) => hash));
  for (const { name, blob } of components)
    if (!there.has(blob)) throw blobMissing("holdfast_session_component", name);
  for (const { id, blob } of frames)
    if (blob !== null && !there.has(blob)) throw blobMissing("holdfast_session_frame", id);
  for (const blob of blobs) verifiedBlob(bytes, blob);
}

/** A random number of 48 bits. */
function randomNumber({ entropy }: Database): number {
  return entropy.bytes(6).reduce((sum, byte) => sum * 256 + byte, 0);
}

/** The revision that a turn made. The picture excludes turns with a later revision than its own. */
function revisionOf(session: number, { turn, result }: TurnRow): number {
  const revision = /^\{"revision":(\d+)/.exec(result)?.[1];
  if (revision === undefined)
    throw corruptRow(
      "holdfast_session_turn",
      `${session}/${turn}`,
      "has a receipt without a revision",
    );
  return Number(revision);
}
