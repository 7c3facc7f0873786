import { manualClock } from "../../../src/model/time/clock.ts";
import type { ManualClock } from "../../../src/model/time/clock.ts";
import type { SessionHandle } from "../../../src/model/session/session.ts";
import { rows } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import type { Lease } from "../../../src/stores/lease/parts.ts";
import { attachments } from "../../../src/stores/attachment/attachments.ts";
import { queue } from "../../../src/stores/queue/queue.ts";
import { leases } from "../../../src/stores/lease/leases.ts";
import type { Leases } from "../../../src/stores/lease/leases.ts";
import { sessions } from "../../../src/stores/session/sessions.ts";
import type { Sessions } from "../../../src/stores/session/sessions.ts";
import type { TurnDraft } from "../../../src/stores/session/turn/draft.ts";
import { withPlace } from "../backend.ts";
import type { Backend, Place } from "../backend.ts";

/** Wraps the body of a test with all that it needs. */
export type InFixture = (body: (fixture: SessionFixture) => Promise<void>) => () => Promise<void>;

/** Sessions as the tests of them need them: a clock that stands, and a holder for every lease. */
export interface SessionFixture {
  readonly place: Place;
  readonly clock: ManualClock;
  readonly database: Database;
  readonly store: Sessions;
  readonly leases: Leases;
  /** Creates a session and takes its lease. */
  readonly held: (id: string) => Promise<HeldSession>;
  /** Every row of every table that a commit writes to. */
  readonly dump: () => Promise<Dump>;
}

export interface HeldSession {
  readonly handle: SessionHandle;
  readonly fence: Lease;
  readonly commit: (turn: TurnDraft) => ReturnType<Sessions["commit"]>;
}

export type Dump = Readonly<Record<string, readonly object[]>>;

export const alice = { owner: "alice", incarnation: "1", process: null };

export function inFixture(
  backend: Backend,
  body: (fixture: SessionFixture) => Promise<void>,
): () => Promise<void> {
  return () =>
    withPlace(backend, async (place) => {
      const clock = manualClock(1_000);
      const database = await place.open({ clock });
      await body(fixtureOf(place, clock, database));
    });
}

export function fixtureOf(place: Place, clock: ManualClock, database: Database): SessionFixture {
  const store = sessions(database);
  const own = leases(database);
  return {
    place,
    clock,
    database,
    store,
    leases: own,
    async held(id) {
      const { generation, id: name } = await store.create(id);
      return holding(store, own, { id: name, generation });
    },
    dump: () => dumpOf(database),
  };
}

export async function holding(
  store: Sessions,
  own: Leases,
  handle: SessionHandle,
  claimant: typeof alice = alice,
): Promise<HeldSession> {
  const outcome = await own.acquire(handle, claimant, { lease: "1 day" });
  if (outcome.kind !== "acquired") throw new Error("The lease is not free.");
  const fence = outcome.lease;
  return {
    handle,
    fence,
    commit: (turn) => store.commit(handle, { fence, ...turn }),
  };
}

/** Hides nodes, as the one that holds every lease. */
export async function hide(
  { store, leases: own }: Pick<SessionFixture, "store" | "leases">,
  id: string,
  ...nodes: readonly string[]
): ReturnType<Sessions["tombstone"]> {
  const handle = await store.open(id);
  if (handle === undefined) throw new Error(`There is no session "${id}".`);
  const { fence } = await holding(store, own, handle);
  return store.tombstone(handle, nodes, { fence });
}

export async function dumpOf(database: Database): Promise<Dump> {
  return database.read("dump", function* () {
    return {
      sessions: yield* rows(sql`SELECT * FROM holdfast_session ORDER BY key`),
      nodes: yield* rows(sql`SELECT * FROM holdfast_session_node ORDER BY key`),
      frames: yield* rows(sql`SELECT * FROM holdfast_session_frame ORDER BY session, id`),
      components: yield* rows(sql`SELECT * FROM holdfast_session_component ORDER BY session, name`),
      usage: yield* rows(sql`SELECT * FROM holdfast_session_usage ORDER BY key`),
      turns: yield* rows(sql`SELECT * FROM holdfast_session_turn ORDER BY session, turn`),
      marks: yield* rows(sql`SELECT * FROM holdfast_session_tombstone ORDER BY session, node`),
      leases: yield* rows(sql`SELECT * FROM holdfast_session_lease ORDER BY session`),
      batches: yield* rows(sql`SELECT * FROM holdfast_queue_batch ORDER BY key`),
      blobs: yield* rows(sql`SELECT hash, kind, size FROM holdfast_blob ORDER BY hash`),
      attachments: yield* rows(sql`SELECT * FROM holdfast_attachment ORDER BY session, id`),
    };
  });
}

/** A message of a user, as a node. */
export function said(text: string, more: object = {}): NonNullable<TurnDraft["nodes"]>[number] {
  return { kind: "message", role: "user", payload: { text }, ...more };
}

/** An answer, as a node. */
export function answered(text: string, more: object = {}): NonNullable<TurnDraft["nodes"]>[number] {
  return { kind: "message", role: "assistant", payload: { text }, ...more };
}

export function spent(
  source: string,
  model: string,
  inputTokens: number,
): {
  source: string;
  model: string;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  reasoningTokens: number;
} {
  return {
    source,
    model,
    inputTokens,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
}

export async function twoBranches({ commit }: HeldSession): Promise<void> {
  await commit({
    turn: "t1",
    nodes: [said("root", { id: "root" }), answered("a", { id: "a" }), said("b", { id: "b" })],
  });
  await commit({
    turn: "t2",
    nodes: [answered("c", { id: "c", parent: { id: "root" } }), said("d", { id: "d" })],
  });
}

export async function pathIds(
  { store }: SessionFixture,
  session: string,
  leaf?: string,
): Promise<string> {
  const { nodes } = await store.path(session, leaf === undefined ? {} : { leaf });
  return nodes.map(({ id }) => id).join(" ");
}

export async function graphIds({ store }: SessionFixture, session: string): Promise<string> {
  const { items: nodes } = await store.graph(session);
  return nodes.map(({ id }) => id).join(" ");
}

export async function fullSession(fixture: SessionFixture, id: string): Promise<void> {
  const { handle, commit } = await fixture.held(id);
  await queue(fixture.database).enqueue(handle, {
    items: [{ kind: "input", payload: "later" }],
  });
  const file = await attachments(fixture.database).put(
    handle,
    new TextEncoder().encode(`file of ${id}`),
    { mediaType: "text/plain" },
  );
  await commit({
    turn: "t1",
    nodes: [said("secret"), answered("secret too")],
    components: {
      own: { version: 1, value: `of ${id}` },
      common: { version: 1, value: "of all" },
    },
    frames: [{ id: "f", reason: "root", state: { of: id } }],
    config: { secret: true },
    usage: [
      {
        source: "chat",
        model: "m",
        inputTokens: 1,
        outputTokens: 1,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        reasoningTokens: 0,
      },
    ],
    attachments: [file.id],
  });
  await commit({ turn: "t2", nodes: [said("more", { id: "hidden" })] });
  await hide(fixture, id, "hidden");
}
