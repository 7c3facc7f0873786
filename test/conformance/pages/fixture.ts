import { AsyncLocalStorage } from "node:async_hooks";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { OwnerId } from "../../../src/model/ids/prefixed-id.ts";
import { idSource } from "../../../src/model/ids/id-source.ts";
import { artifacts, blobs, maintenance } from "../../../src/blobs.ts";
import { awaitEvents, effects, processEffects } from "../../../src/effects.ts";
import { executions } from "../../../src/executions.ts";
import { processes } from "../../../src/processes.ts";
import { attachments, leases, queue, sessions } from "../../../src/sessions.ts";
import { schedules, triggers } from "../../../src/triggers.ts";
import type { Database } from "../../../src/sql/database.ts";
import { withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { bytesOf } from "../blob/owners.ts";
import { undone, watched } from "./undone.ts";
import type { Watch } from "./undone.ts";

/** Every page there is. A new one is added here. */
export const pageMakers = {
  executions,
  sessions,
  queue,
  leases,
  processes,
  effects,
  awaitEvents,
  processEffects,
  triggers,
  schedules,
  blobs,
  attachments,
  sessionAttachments: (database: Database) => attachments(database).ofSession("s"),
  artifacts,
  maintenance,
} satisfies Record<string, (database: Database) => object>;

export type PageName = keyof typeof pageMakers;

export const pageNames: readonly PageName[] = Object.keys(pageMakers) as PageName[];

/** What is there for calls to be about. */
export interface Rows {
  readonly handle: object;
  readonly lease: object;
  readonly batch: string;
  readonly processLease: object;
  readonly effectClaim: object;
  readonly effectHolder: object;
  readonly token: string;
  readonly hash: string;
  readonly attachment: string;
  readonly holder: { readonly executor: string; readonly run: string };
  readonly owner: OwnerId;
}

export interface PagesFixture {
  readonly database: Database;
  /** Counts what a call changes, however long it takes. */
  readonly watching: <T>(watch: Watch, run: () => T) => T;
  /** A page whose writes are undone, or, for calls of several steps, are not. */
  readonly page: (name: PageName, isKept: boolean) => Record<string, unknown>;
  readonly rows: Rows;
}

export function onPages(
  backend: Backend,
  body: (fixture: PagesFixture) => Promise<void>,
): () => Promise<void> {
  return () =>
    withPlace(backend, async (place) => {
      const clock = manualClock(1_000_000);
      const database = await place.open({ clock });
      const rows = await writeRows(database);
      const watches = new AsyncLocalStorage<Watch>();
      const current = (): Watch | undefined => watches.getStore();
      const kinds = [undone(database, current), watched(database, current)];
      const made = kinds.map(
        (kind) =>
          new Map<string, object>(
            Object.entries(pageMakers).map(([name, make]) => [name, make(kind)]),
          ),
      );
      const page: PagesFixture["page"] = (name, isKept) =>
        made[isKept ? 1 : 0]?.get(name) as Record<string, unknown>;
      await body({
        database,
        page,
        rows,
        watching: (watch, run) => watches.run(watch, run),
      });
    });
}

const claimant = { owner: "ann", incarnation: "1" };

/** Something of each kind, and what it takes to work on it. */
export async function writeRows(database: Database): Promise<Rows> {
  const ids = idSource(database);
  const holder = { executor: ids.nextId("Exr"), run: ids.nextId("Run") };
  const log = executions(database);
  await log.create({ id: "a", function: "f" });
  await log.createLocked({ id: "held", function: "f" }, { holder, lease: "1 day" });
  await log.create({ id: "act", function: "f", role: "activity" });
  await log.create({ id: "done", function: "f" });
  await log.finish("done", 1, { kind: "completed", value: 1 });
  const store = sessions(database);
  const handle = await store.create("s");
  await store.create("gone");
  const acquired = await leases(database).acquire("s", claimant);
  if (acquired.kind !== "acquired") throw new Error("The lease is free.");
  const { lease } = acquired;
  const items = [{ kind: "input", payload: 1 }];
  const queued = await queue(database).enqueue("s", { items });
  if (queued.kind === "consumed") throw new Error("It is new.");
  const files = attachments(database);
  const attached = await files.put("s", bytesOf("picture"), {
    mediaType: "image/png",
  });
  await store.commit(handle, {
    turn: "t0",
    fence: lease,
    nodes: [{ id: "n", kind: "message", payload: "hi" }],
  });
  const { hash } = await blobs(database).put(bytesOf("blob"));
  return {
    handle: { id: handle.id, generation: handle.generation },
    lease,
    holder,
    hash,
    batch: queued.batch.id,
    attachment: attached.id,
    owner: database.owner,
    ...(await writeBackground(database)),
  };
}

async function writeBackground(
  database: Database,
): Promise<Pick<Rows, "processLease" | "effectClaim" | "effectHolder" | "token">> {
  const scope = { kind: "turn", id: "t", session: "s" } as const;
  const registry = processes(database);
  await registry.register({
    id: "p",
    kind: "tool",
    eventTypes: [{ name: "signal.go" }],
  });
  await registry.grant("p", "s");
  const taken = await registry.claim("p", claimant);
  const claimed = await effects(database).claim(scope, "held", {
    kind: "ask",
    input: 1,
  });
  if (taken.kind !== "acquired" || claimed.kind !== "claimed")
    throw new Error("Nobody else is there.");
  const seen = await effects(database).claim(scope, "held", {
    kind: "ask",
    input: 1,
  });
  if (seen.kind !== "busy") throw new Error("It was claimed.");
  const { token } = await awaitEvents(database).open(scope, "open");
  const rules = triggers(database);
  const source = { type: "webhook", key: "w" };
  await rules.subscribe({ key: "on", source, target: { kind: "tool" } });
  await rules.record({ key: "o", source });
  await schedules(database).put("report", "daily", { every: "1 day" });
  return {
    processLease: taken.lease,
    effectClaim: claimed.claim,
    effectHolder: seen.holder,
    token,
  };
}
