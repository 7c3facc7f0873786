import { describe, expect, test } from "vitest";
import {
  appendEvents,
  appendProcessEvent,
  attachments,
  awaitEvents,
  blobs,
  commitTurn,
  createExecution,
  effects,
  enqueueBatch,
  executionCodec,
  executions,
  idSource,
  keepBlob,
  leases,
  maintenance,
  openAwaitEvent,
  parseFunctionName,
  processes,
  queue,
  registerProcess,
  row,
  sessionCodec,
  sessions,
  spawnProcess,
  sql,
} from "../../src/stores.ts";
import type { Created, Lease } from "../../src/stores.ts";
import type { Database } from "../../src/stores/database.ts";
import type { Turn } from "../../src/stores/session/turn-prepared.ts";
import { parseExecutionId } from "../../src/model/execution-id.ts";
import { parseSessionId } from "../../src/model/session-id.ts";
import type { EnqueueBatch } from "../../src/stores/queue/enqueue.ts";
import type { Encoded } from "../../src/model/encoded.ts";
import { addNote, createNoteTable, noteHalves } from "../conformance/notes.ts";
import { pastRival, withStale } from "./stale-snapshot.ts";
import type { Outcome, Stale } from "./stale-snapshot.ts";

/**
 * Bodies of the app's own are serializable: they see the database as it was
 * when they began. What they compose of ours must not believe that. Either the
 * body is run again, or it gets the answer that a new snapshot would give.
 */

const again = 2;
const once = 1;

async function held(database: Database, id: string): Promise<Lease> {
  await sessions(database).create(id);
  return leaseOf(database, id, "alice");
}

async function leaseOf(
  database: Database,
  id: string,
  owner: string,
): Promise<Lease> {
  const outcome = await leases(database).acquire(
    id,
    { owner, incarnation: owner },
    { ttl: "10s" },
  );
  if (outcome.kind !== "acquired") throw new Error("The lease is not free.");
  return outcome.lease;
}

function turnOf(database: Database, fence: Lease, turn: Turn) {
  const input = sessionCodec(database).turn(fence.session, { fence, ...turn });
  return () => commitTurn(input);
}

const hello: Turn = {
  turn: "t1",
  nodes: [{ id: "a", kind: "message", role: "user", payload: "hello" }],
};

describe("a turn committed with an old snapshot", () => {
  test(
    "is refused when somebody else has taken the lease since",
    withStale(async ({ database, clock, after }) => {
      const fence = await held(database, "s");
      const outcome = await after(
        async () => {
          clock.advance(20_000);
          await leaseOf(database, "s", "bob");
        },
        turnOf(database, fence, hello),
      );
      expect(outcome).toMatchObject({ runs: again, code: "LEASE_LOST" });
      expect((await sessions(database).load("s")).path.nodes).toEqual([]);
    }),
  );

  test(
    "is refused when its lease was given back since",
    withStale(async ({ database, after }) => {
      const fence = await held(database, "s");
      expect(
        await after(
          () => leases(database).release(fence),
          turnOf(database, fence, hello),
        ),
      ).toMatchObject({ runs: again, code: "LEASE_LOST" });
    }),
  );

  test(
    "is answered from its receipt when it was committed since",
    withStale(async ({ database, after }) => {
      const fence = await held(database, "s");
      expect(
        await after(
          () => sessions(database).commit(fence.session, { fence, ...hello }),
          turnOf(database, fence, hello),
        ),
      ).toMatchObject({
        runs: again,
        value: { kind: "replayed", revision: 1, nodes: ["a"] },
      });
    }),
  );

  test(
    "is refused when another turn has moved the revision since",
    withStale(async ({ database, after }) => {
      const fence = await held(database, "s");
      const other: Turn = { turn: "t0", nodes: [] };
      expect(
        await after(
          () => sessions(database).commit(fence.session, { fence, ...other }),
          turnOf(database, fence, { ...hello, expectedRevision: 0 }),
        ),
      ).toMatchObject({ runs: again, code: "REVISION_CONFLICT" });
    }),
  );

  test(
    "is refused when a batch it claims was given back since",
    withStale(async ({ database, after }) => {
      const fence = await held(database, "s");
      const work = queue(database);
      await work.enqueue("s", { items: [{ kind: "input", payload: "hi" }] });
      const claimed = await work.claimTurn(fence, { boundary: "idle" });
      if (claimed === undefined) throw new Error("Nothing was claimed.");
      expect(
        await after(
          () => work.abandon(fence.session, claimed.ref),
          turnOf(database, fence, { ...hello, claims: [claimed.ref] }),
        ),
      ).toMatchObject({ runs: again, code: "CLAIM_LOST" });
      expect((await work.list("s")).items).toHaveLength(1);
    }),
  );

  test(
    "is refused when the session was deleted since",
    withStale(async ({ database, after }) => {
      const fence = await held(database, "s");
      expect(
        await after(
          () => sessions(database).delete("s"),
          turnOf(database, fence, hello),
        ),
      ).toMatchObject({ runs: again, code: "SESSION_DELETED" });
    }),
  );

  test(
    "leaves a blob that it replaces when another session has come to refer to it since",
    withStale(async ({ database, clock, after }) => {
      const store = sessions(database);
      const fence = await held(database, "s");
      const other = await held(database, "other");
      const shared = (turn: string): Turn => ({
        turn,
        nodes: [],
        components: { memory: { version: 1, value: "the same for both" } },
      });
      await store.commit(fence.session, { fence, ...shared("t1") });
      const outcome = await after(
        () => store.commit(other.session, { fence: other, ...shared("t1") }),
        turnOf(database, fence, {
          turn: "t2",
          nodes: [],
          components: { memory: { version: 1, value: "another one" } },
        }),
      );
      expect(outcome).toMatchObject({
        runs: once,
        value: { kind: "committed", revision: 2 },
      });
      clock.advance(86_400_000);
      await maintenance(database).collect();
      expect((await store.load("other")).components).toMatchObject({
        memory: { value: "the same for both" },
      });
    }),
  );

  test(
    "leaves what it replaces to the next collection, which removes it",
    withStale(async ({ database, clock, after }) => {
      const fence = await held(database, "s");
      const memory = (value: string) => ({ memory: { version: 1, value } });
      await sessions(database).commit(fence.session, {
        fence,
        turn: "t1",
        nodes: [],
        components: memory("one"),
      });
      const part = turnOf(database, fence, {
        turn: "t2",
        nodes: [],
        components: memory("two"),
      });
      expect(await after(async () => undefined, part)).toMatchObject({
        runs: once,
        value: { kind: "committed" },
      });
      expect(await blobCount(database)).toBe(2);
      clock.advance(86_400_000);
      await maintenance(database).collect();
      expect(await blobCount(database)).toBe(1);
    }),
  );

  test(
    "stores a blob anew that was removed since",
    withStale(async ({ database, clock, after }) => {
      const fence = await held(database, "s");
      const store = sessions(database);
      const other = await held(database, "other");
      const components = { memory: { version: 1, value: "of both" } } as const;
      const turn: Turn = { turn: "t1", nodes: [], components };
      await store.commit(other.session, { fence: other, ...turn });
      const outcome = await after(
        async () => {
          await store.delete("other");
          clock.advance(1_000);
          await maintenance(database).collect();
          expect(await blobCount(database)).toBe(0);
        },
        turnOf(database, fence, turn),
      );
      expect(outcome).toMatchObject({
        runs: again,
        value: { kind: "committed" },
      });
      expect((await store.load("s")).components).toMatchObject({
        memory: { value: "of both" },
      });
    }),
  );

  test(
    "is refused when an attachment it refers to was swept since",
    withStale(async ({ database, clock, after }) => {
      const fence = await held(database, "s");
      const files = attachments(database);
      const file = await files.put("s", new Uint8Array([1]), {
        mediaType: "image/png",
      });
      const part = turnOf(database, fence, {
        ...hello,
        attachments: [file.id],
        // The lease is over by then; without nodes of others nothing else is.
      });
      const outcome = await after(async () => {
        await leases(database).renew(fence, { ttl: "30 days" });
        clock.advance(7 * 86_400_000);
        await files.sweep();
      }, part);
      expect(outcome).toMatchObject({
        runs: again,
        code: "ATTACHMENT_NOT_FOUND",
      });
    }),
  );
});

async function blobCount(database: Database): Promise<number | undefined> {
  const counted = await database.read("blobs", () =>
    row<{ readonly n: number }>(sql`SELECT COUNT(*) AS n FROM holdfast_blob`),
  );
  return counted?.n;
}

const message: EnqueueBatch = {
  session: { id: parseSessionId("s") },
  id: "b2",
  source: "mail-7",
  policy: {
    class: "turn",
    delivery: "earliestSafeBoundary",
    slot: "exclusive",
    mergeKey: null,
  },
  availableAt: 0,
  items: [{ kind: "input", payload: '"hi"' as Encoded }],
  now: 1_000,
  forgottenUntil: 0,
};
const draft = { source: "mail-7", items: [{ kind: "input", payload: "hi" }] };

describe("a batch enqueued with an old snapshot", () => {
  test(
    "is a duplicate when the same source was enqueued since",
    withStale(async ({ database, after }) => {
      await sessions(database).create("s");
      expect(
        await after(
          () => queue(database).enqueue("s", draft),
          () => enqueueBatch(message),
        ),
      ).toMatchObject({ runs: again, value: { kind: "duplicate" } });
      expect((await queue(database).list("s")).items).toHaveLength(1);
    }),
  );

  test(
    "is consumed when the same source was enqueued and dealt with since",
    withStale(async ({ database, after }) => {
      const fence = await held(database, "s");
      const work = queue(database);
      const rival = async (): Promise<void> => {
        await work.enqueue("s", draft);
        const claimed = await work.claimTurn(fence, { boundary: "idle" });
        await work.completeWithoutCommit(
          fence,
          claimed === undefined ? [] : [claimed.ref],
        );
      };
      expect(await after(rival, () => enqueueBatch(message))).toMatchObject({
        runs: again,
        value: { kind: "consumed" },
      });
      expect((await work.list("s")).items).toEqual([]);
    }),
  );

  test(
    "is refused when the session was deleted and created again since",
    withStale(async ({ database, after }) => {
      const { id, generation } = await sessions(database).create("s");
      const rival = async (): Promise<void> => {
        await sessions(database).delete("s");
        await sessions(database).create("s");
      };
      expect(
        await after(rival, () =>
          enqueueBatch({ ...message, session: { id, generation } }),
        ),
      ).toMatchObject({ runs: again, code: "SESSION_DELETED" });
    }),
  );
});

describe("events appended with an old snapshot", () => {
  const id = parseExecutionId("order-42");
  const note = { kind: "patched", patch: "p", call: 1, seen: 0 } as const;

  test(
    "are refused when others were appended since",
    withStale(async ({ database, after }) => {
      const log = executions(database);
      await log.create({ id, function: "orders/fulfil" });
      expect(
        await after(
          () => log.append(id, 1, [{ ...note, patch: "other" }]),
          () => appendEvents({ id, version: 1, at: 1_000, events: [note] }),
        ),
      ).toMatchObject({ runs: again, code: "VERSION_CONFLICT" });
    }),
  );

  test(
    "answer as the first call did when they were appended since",
    withStale(async ({ database, after }) => {
      const log = executions(database);
      await log.create({ id, function: "orders/fulfil" });
      expect(
        await after(
          () => log.append(id, 1, [note]),
          () => appendEvents({ id, version: 1, at: 1_000, events: [note] }),
        ),
      ).toMatchObject({ runs: again, value: { nextVersion: 2 } });
    }),
  );

  test(
    "are refused when another run has locked the execution since",
    withStale(async ({ database, clock, after }) => {
      const log = executions(database);
      const ids = idSource(database);
      const holder = () => ({
        executor: ids.nextId("Exr"),
        run: ids.nextId("Run"),
      });
      await log.create({ id, function: "orders/fulfil" });
      const fence = holder();
      const terms = { limit: 1, functions: ["orders/fulfil"] };
      await log.lockPending({ ...terms, holder: fence, lease: "1s" });
      const outcome = await after(
        async () => {
          clock.advance(60_000);
          await log.expireTimers();
          clock.advance(60_000);
          await log.lockPending({ ...terms, holder: holder(), lease: "1s" });
        },
        () =>
          appendEvents({ id, version: 2, at: 1_000, events: [note], fence }),
      );
      expect(outcome.runs).toBe(again);
      expect(["LOCK_LOST", "VERSION_CONFLICT"]).toContain(outcome.code);
    }),
  );

  test(
    "are refused when the execution has ended since",
    withStale(async ({ database, after }) => {
      const log = executions(database);
      await log.create({ id, function: "orders/fulfil" });
      expect(
        await after(
          () => log.finish(id, 1, { kind: "completed", value: 1 }),
          () => appendEvents({ id, version: 1, at: 1_000, events: [note] }),
        ),
      ).toMatchObject({ runs: again, code: "EXECUTION_FINISHED" });
    }),
  );

  test(
    "and an execution that was created since is found",
    withStale(async ({ database, after }) => {
      const log = executions(database);
      const created: Created = {
        kind: "created",
        role: "workflow",
        function: parseFunctionName("orders/fulfil"),
        ...executionCodec(database).input({ cents: 5 }),
        scheduledAt: 1_000,
        deadlineAt: null,
        concurrencyKey: null,
        codeVersion: null,
        isPaused: false,
        scheduledBy: null,
        forkedFrom: null,
        metadata: {},
      };
      const rival = () =>
        log.create({ id, function: "orders/fulfil", input: { cents: 5 } });
      expect(
        await after(rival, () => createExecution({ id, at: 1_000, created })),
      ).toMatchObject({ runs: again, value: { existed: true } });
    }),
  );
});

const eventTypes = [
  { name: "progress" },
  { name: "done", terminal: { state: "completed" } },
] as const;

describe("an event of a process appended with an old snapshot", () => {
  test(
    "is a replay when it was appended since",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      await store.register({ id: "p", kind: "k", eventTypes });
      const event = { type: "progress", payload: 1, replayKey: "r" };
      const input = store.appending("p", event);
      expect(
        await after(
          () => store.append("p", event),
          () => appendProcessEvent(input),
        ),
      ).toMatchObject({ runs: again, value: { isReplay: true } });
    }),
  );

  test(
    "does not end a process that somebody has begun to work on since",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      await store.register({ id: "p", kind: "k", eventTypes });
      const input = store.appending("p", {
        type: "done",
        payload: 1,
        replayKey: "r",
      });
      expect(
        await after(
          () => store.claim("p", { owner: "w", incarnation: "1" }),
          () => appendProcessEvent(input),
        ),
      ).toMatchObject({ runs: again, code: "PROCESS_LEASED" });
    }),
  );

  test(
    "is refused when the lease was taken over since",
    withStale(async ({ database, clock, after }) => {
      const store = processes(database);
      await store.register({ id: "p", kind: "k", eventTypes });
      const claim = async (owner: string) => {
        const outcome = await store.claim(
          "p",
          { owner, incarnation: owner },
          { ttl: "10s" },
        );
        if (outcome.kind !== "acquired") throw new Error("It is not free.");
        return outcome.lease;
      };
      const fence = await claim("alice");
      const input = store.appending("p", { type: "progress", fence });
      const rival = async (): Promise<void> => {
        clock.advance(20_000);
        await claim("bob");
      };
      expect(await after(rival, () => appendProcessEvent(input))).toMatchObject(
        { runs: again, code: "PROCESS_LEASE_LOST" },
      );
    }),
  );

  test(
    "is refused when the process has ended since",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      await store.register({ id: "p", kind: "k", eventTypes });
      const input = store.appending("p", {
        type: "done",
        payload: 1,
        replayKey: "r",
      });
      expect(
        await after(
          () => store.complete("p", { kind: "completed", value: 2 }),
          () => appendProcessEvent(input),
        ),
      ).toMatchObject({ runs: again, code: "PROCESS_TERMINAL" });
    }),
  );

  test(
    "wakes nobody when the session was deleted since",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      await sessions(database).create("s");
      await store.register({
        id: "p",
        kind: "k",
        wakeTarget: "s",
        eventTypes: [{ name: "tell", wake: { input: { kind: "payload" } } }],
      });
      const input = store.appending("p", { type: "tell", payload: "hi" });
      expect(
        await after(
          () => sessions(database).delete("s"),
          () => appendProcessEvent(input),
        ),
      ).toMatchObject({
        runs: again,
        value: { event: { wake: { delivery: { kind: "noTarget" } } } },
      });
    }),
  );

  test(
    "and a process that was registered or spawned since is found as it is",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      const process = { id: "p", kind: "k" } as const;
      await store.register(process);
      const input = store.registering(process);
      expect(
        await after(
          () => store.complete("p", { kind: "completed", value: 2 }),
          () => registerProcess(input),
        ),
      ).toMatchObject({
        runs: again,
        value: { existed: true, record: { status: "completed" } },
      });
    }),
  );

  test(
    "and what was spawned since is not spawned twice",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      const process = {
        id: "p",
        kind: "k",
        execution: { function: "ci/build" },
      } as const;
      const input = store.spawning(process);
      expect(
        await after(
          () => store.spawn(process),
          () => spawnProcess(input),
        ),
      ).toMatchObject({ runs: again, value: { existed: true } });
    }),
  );
});

describe("an effect done and recorded with an old snapshot", () => {
  const scope = { kind: "turn", session: "s", id: "t" } as const;
  const ask = { kind: "llm", input: 1 } as const;

  /** Does an effect in one transaction with its record, which begins before the rival. */
  function transacted(
    { database, barrier }: Stale,
    rival: () => Promise<unknown>,
  ): Promise<Outcome> {
    return pastRival(barrier, rival, (stopOnce) =>
      effects(database).transact(scope, "k", ask, function* () {
        yield* stopOnce();
        yield* addNote({ id: "n" });
        return "ours";
      }),
    );
  }

  test(
    "is what was recorded since, and leaves nothing of its own",
    withStale(async (stale) => {
      const { database } = stale;
      await database.write("table", createNoteTable);
      await sessions(database).create("s");
      const rival = () =>
        effects(database).execute(scope, "k", ask, () => "theirs");
      expect(await transacted(stale, rival)).toEqual({
        runs: again,
        value: "theirs",
      });
      expect(await noteHalves(database)).toBe("");
    }),
  );

  test(
    "is refused when the session was deleted since",
    withStale(async (stale) => {
      const { database } = stale;
      await database.write("table", createNoteTable);
      await sessions(database).create("s");
      expect(
        await transacted(stale, () => sessions(database).delete("s")),
      ).toMatchObject({ runs: again, code: "SESSION_NOT_FOUND" });
      expect(await noteHalves(database)).toBe("");
    }),
  );
});

describe("a blob kept with an old snapshot", () => {
  test(
    "is not there when it was collected since",
    withStale(async ({ database, clock, after }) => {
      const store = blobs(database);
      const { hash } = await store.put(new Uint8Array([1]));
      const input = store.keeping(hash, "invoice-7");
      const rival = async (): Promise<void> => {
        clock.advance(86_400_000);
        await maintenance(database).collect();
      };
      expect(await after(rival, () => keepBlob(input))).toMatchObject({
        runs: again,
        code: "BLOB_NOT_FOUND",
      });
    }),
  );

  test(
    "is kept once when it was kept since",
    withStale(async ({ database, after }) => {
      const store = blobs(database);
      const { hash } = await store.put(new Uint8Array([1]));
      const input = store.keeping(hash, "invoice-7");
      expect(
        await after(
          () => store.keep(hash, "invoice-7"),
          () => keepBlob(input),
        ),
      ).toMatchObject({ runs: again, value: false });
    }),
  );
});

describe("an await-event opened with an old snapshot", () => {
  const scope = { kind: "turn", session: "s", id: "t" } as const;

  test(
    "is the one that was opened since",
    withStale(async ({ database, after }) => {
      await sessions(database).create("s");
      const store = awaitEvents(database);
      const input = store.opening(scope, "approval");
      expect(
        await after(
          () => store.open(scope, "approval"),
          () => openAwaitEvent(input),
        ),
      ).toMatchObject({ runs: again, value: { existed: true } });
    }),
  );

  test(
    "is refused when it was revoked since",
    withStale(async ({ database, after }) => {
      await sessions(database).create("s");
      const store = awaitEvents(database);
      await store.open(scope, "approval");
      const input = store.opening(scope, "approval");
      expect(
        await after(
          () => store.revoke(scope, "approval"),
          () => openAwaitEvent(input),
        ),
      ).toMatchObject({ runs: again, code: "AWAIT_EVENT_REVOKED" });
    }),
  );

  test(
    "is refused when the session was deleted since",
    withStale(async ({ database, after }) => {
      await sessions(database).create("s");
      const input = awaitEvents(database).opening(scope, "approval");
      expect(
        await after(
          () => sessions(database).delete("s"),
          () => openAwaitEvent(input),
        ),
      ).toMatchObject({ runs: again, code: "SESSION_NOT_FOUND" });
    }),
  );
});
