import type { Lease } from "../../src/stores/lease/parts.ts";
import { artifacts, blobs, maintenance } from "../../src/blobs.ts";
import { attachments, leases, queue, sessions } from "../../src/sessions.ts";
import type { Database } from "../../src/sql/database.ts";
import { exportSession, importSession } from "../../src/sqlite.ts";
import { hashes } from "./blob/owners.ts";

/** What a position of a call takes: wrong is whatever else it is given. */
export type Kind =
  | "session"
  | "handle"
  | "id"
  | "text"
  | "hash"
  | "bytes"
  | "object"
  | "options"
  | "lease"
  | "list"
  | "instant"
  | "path"
  | "function"
  | "count"
  | "duration"
  /** A session, or null for none. */
  | "owner"
  /** A text, or nothing. */
  | "reason"
  /** Whatever can be stored. */
  | "any";

/** A call that is right, and what each of its positions takes. */
export interface Call {
  readonly name: string;
  readonly kinds: readonly Kind[];
  readonly args: readonly unknown[];
  readonly run: (...args: never[]) => unknown;
  /** Options that are right in type, each of which is made wrong in turn. */
  readonly options?: readonly string[];
}

export const sessionName = "border";

const bob = { owner: "bob", incarnation: "1", process: null };
export const wait = ["signal", "timeout"] as const;

export const more = ["options", {}] as const;
const content = ["bytes", new Uint8Array(1)] as const;
const slices = ["signal", "rowsPerSlice", "onProgress"] as const;

interface Around {
  readonly database: Database;
  readonly folder: string;
  readonly s: Lease["session"];
  readonly named: readonly ["session", Lease["session"]];
  readonly held: readonly ["lease", Lease];
}

/** None of them needs its facade: they are called as they are. */
export function methodsOf<T extends object>(facade: T): { readonly [Name in keyof T]: unknown } {
  return facade;
}

export function call(
  name: string,
  run: unknown,
  positions: readonly (readonly [Kind, unknown])[],
  options?: readonly string[],
): Call {
  return {
    name,
    run: run as Call["run"],
    kinds: positions.map(([kind]) => kind),
    args: positions.map(([, arg]) => arg),
    ...(options && { options }),
  };
}

/** Every call of every facade, with arguments that are right. */
export function borderCalls(database: Database, lease: Lease, folder: string): readonly Call[] {
  const s = lease.session;
  const around: Around = {
    database,
    folder,
    s,
    named: ["session", s],
    held: ["lease", lease],
  };
  return [sessionCalls, leaseCalls, queueCalls, attachmentCalls, blobCalls, transferCalls].flatMap(
    (part) => part(around),
  );
}

function sessionCalls({ database, s, named }: Around): readonly Call[] {
  const own = methodsOf(sessions(database));
  return [
    call("create", own.create, [["id", "new"], ["options", {}], more], wait),
    call("open", own.open, [["id", sessionName], more], wait),
    call("meta", own.meta, [named, more], wait),
    call("saveMeta", own.saveMeta, [named, ["object", {}], more], wait),
    call("list", own.list, [more], [...wait, "parent", "after", "limit"]),
    call("fork", own.fork, [named, ["id", "fork"], more], [...wait, "node", "meta", "withState"]),
    call("commit", own.commit, [["handle", s], ["object", {}], more]),
    call("head", own.head, [named, more], wait),
    call("load", own.load, [named, more], [...wait, "leaf", "limit"]),
    call("path", own.path, [named, more], [...wait, "leaf", "limit"]),
    call("graph", own.graph, [named, more], [...wait, "after", "limit"]),
    call("node", own.node, [named, ["text", "n"], more], wait),
    call("components", own.components, [named, more], wait),
    call("usage", own.usage, [named, more], wait),
    call("delete", own.delete, [named, more], slices),
    call("erase", own.erase, [named, more], [...slices, "attachments"]),
    call("reclaim", own.reclaim, [more], slices),
    call(
      "tombstone",
      own.tombstone,
      [named, ["list", ["n"]], more],
      [...wait, "fence", "expectedRevision"],
    ),
    call("vacuum", own.vacuum, [named, more], ["signal", "rowsPerSlice"]),
    call("sizes", own.sizes, [named, more], wait),
  ];
}

function leaseCalls({ database, named, held }: Around): readonly Call[] {
  const rights = methodsOf(leases(database));
  return [
    call("acquire", rights.acquire, [named, ["object", bob], more], [...wait, "lease"]),
    call(
      "reclaim lease",
      rights.reclaim,
      [named, ["object", bob], ["object", {}], more],
      [...wait, "lease"],
    ),
    call("waitForLease", rights.waitForLease, [named, ["object", bob], more], [...wait, "lease"]),
    call("renew", rights.renew, [held, more], [...wait, "lease"]),
    call("release", rights.release, [held, more], wait),
    call("read lease", rights.read, [named, more], wait),
    call("keep", rights.keep, [held, more], ["lease", "every"]),
  ];
}

function queueCalls({ database, named, held }: Around): readonly Call[] {
  const work = methodsOf(queue(database));
  return [
    call("enqueue", work.enqueue, [named, ["object", {}], more], wait),
    call("cancel", work.cancel, [named, ["text", "b"], more], wait),
    call("list queue", work.list, [named, more], [...wait, "state", "after", "limit"]),
    call("purge", work.purgeSourceKeys, [more], ["signal", "rowsPerSlice"]),
    call("claimTurn", work.claimTurn, [held, more], [...wait, "boundary", "limit", "key"]),
    call("claimCommand", work.claimCommand, [held, more], [...wait, "key"]),
    call(
      "claimBatches",
      work.claimBatches,
      [held, ["list", ["b"]], more],
      [...wait, "boundary", "key"],
    ),
    call("abandon", work.abandon, [named, ["object", {}], more], wait),
    call("complete", work.completeWithoutCommit, [
      held,
      ["list", [{ claim: "c", batches: [] }]],
      more,
    ]),
    call("waitForWork", work.waitForWork, [named, more], [...wait, "boundary"]),
  ];
}

function attachmentCalls({ database, named }: Around): readonly Call[] {
  const files = methodsOf(attachments(database));
  return [
    call("put", files.put, [named, content, ["object", {}]]),
    call("get", files.get, [named, ["hash", hashes.abc]]),
    call("list attachments", files.list, [named, more], ["after", "limit"]),
    call("listUncommitted", files.listUncommitted, [named, ["instant", 1], more], ["limit"]),
    call("commit attachments", files.commit, [named, ["list", [hashes.abc]]]),
    call("forget", files.forget, [named, ["hash", hashes.abc]]),
    call("ofSession", files.ofSession, [named]),
    call("sweep", files.sweep, [more], [...slices, "olderThan"]),
    call("removeForgotten", files.removeForgotten, [more], slices),
  ];
}

function blobCalls({ database }: Around): readonly Call[] {
  const store = blobs(database);
  const bytes = methodsOf(store);
  const pointers = methodsOf(artifacts(database));
  const care = methodsOf(maintenance(database));
  return [
    call("put blob", bytes.put, [content, more], [...wait, "kind"]),
    call("get blob", bytes.get, [["hash", hashes.abc], more], wait),
    ...(["keep", "release"] as const).map((name) =>
      call(`${name} blob`, bytes[name], [["hash", hashes.abc], ["text", "invoice/7"], more], wait),
    ),
    call("keep blob, prepared", (hash: string, owner: string) => store.keep.prepare(hash, owner), [
      ["hash", hashes.abc],
      ["text", "invoice/7"],
    ]),
    call("keeps of blobs", bytes.keeps, [more], [...wait, "after", "limit", "hash", "owner"]),
    call(
      "put artifact",
      pointers.put,
      [["text", "space"], ["text", "name"], content, more],
      [...wait, "kind"],
    ),
    ...(["get", "load", "remove"] as const).map((name) =>
      call(`${name} artifact`, pointers[name], [["text", "space"], ["text", "name"], more], wait),
    ),
    call("list artifacts", pointers.list, [["text", "space"], more], [...wait, "after", "limit"]),
    call("collect", care.collect, [more], [...slices, "grace"]),
    call("sizes of all", care.sizes, [more], ["signal"]),
  ];
}

function transferCalls({ database, folder, named }: Around): readonly Call[] {
  return [
    call(
      "exportSession",
      exportSession.bind(undefined, database),
      [named, ["path", folder], more],
      ["signal", "onProgress", "attachments", "sqlite"],
    ),
    call(
      "importSession",
      importSession.bind(undefined, database),
      [["path", `${folder}/none.db`], more],
      ["signal", "onProgress", "attachments", "sqlite", "id"],
    ),
  ];
}
