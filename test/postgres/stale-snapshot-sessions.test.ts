import { describe, expect, test } from "vitest";
import { maintenance } from "../../src/blobs.ts";
import { row, sql, type Database } from "../../src/kernel.ts";
import type { Lease, TurnDraft } from "../../src/sessions.ts";
import { attachments, leases, queue, sessions } from "../../src/sessions.ts";
import { again, heldSession, leaseOf, once, withStale } from "./stale-snapshot.ts";

function turnOf(database: Database, fence: Lease, turn: TurnDraft) {
  return sessions(database).commit.prepare(fence.session, { fence, ...turn });
}

const hello: TurnDraft = {
  turn: "t1",
  nodes: [{ id: "a", kind: "message", role: "user", payload: "hello" }],
};

test(
  "a session locked with an old snapshot shows what was committed since",
  withStale(async ({ database, after }) => {
    const fence = await heldSession(database, "s");
    const { commit, lock } = sessions(database);
    expect(
      await after(() => commit(fence.session, { fence, ...hello }), lock.prepare("s")),
    ).toMatchObject({ runs: again, value: { revision: 1 } });
  }),
);

describe("a turn committed with an old snapshot", () => {
  test(
    "is refused when somebody else has taken the lease since",
    withStale(async ({ database, clock, after }) => {
      const fence = await heldSession(database, "s");
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
      const fence = await heldSession(database, "s");
      expect(
        await after(() => leases(database).release(fence), turnOf(database, fence, hello)),
      ).toMatchObject({ runs: again, code: "LEASE_LOST" });
    }),
  );

  test(
    "is answered from its receipt when it was committed since",
    withStale(async ({ database, after }) => {
      const fence = await heldSession(database, "s");
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
      const fence = await heldSession(database, "s");
      const other: TurnDraft = { turn: "t0", nodes: [] };
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
      const fence = await heldSession(database, "s");
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
      const fence = await heldSession(database, "s");
      expect(
        await after(() => sessions(database).delete("s"), turnOf(database, fence, hello)),
      ).toMatchObject({ runs: again, code: "SESSION_DELETED" });
    }),
  );

  test(
    "leaves a blob that it replaces when another session has come to refer to it since",
    withStale(async ({ database, clock, after }) => {
      const store = sessions(database);
      const fence = await heldSession(database, "s");
      const other = await heldSession(database, "other");
      const shared = (turn: string): TurnDraft => ({
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
      const fence = await heldSession(database, "s");
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
      const fence = await heldSession(database, "s");
      const store = sessions(database);
      const other = await heldSession(database, "other");
      const components = { memory: { version: 1, value: "of both" } } as const;
      const turn: TurnDraft = { turn: "t1", nodes: [], components };
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
      const fence = await heldSession(database, "s");
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
        await leases(database).renew(fence, { lease: "30 days" });
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

const draft = { source: "mail-7", items: [{ kind: "input", payload: "hi" }] };

describe("a batch enqueued with an old snapshot", () => {
  test(
    "is a duplicate when the same source was enqueued since",
    withStale(async ({ database, after }) => {
      await sessions(database).create("s");
      expect(
        await after(
          () => queue(database).enqueue("s", draft),
          queue(database).enqueue.prepare("s", draft),
        ),
      ).toMatchObject({ runs: again, value: { kind: "duplicate" } });
      expect((await queue(database).list("s")).items).toHaveLength(1);
    }),
  );

  test(
    "is consumed when the same source was enqueued and dealt with since",
    withStale(async ({ database, after }) => {
      const fence = await heldSession(database, "s");
      const work = queue(database);
      const rival = async (): Promise<void> => {
        await work.enqueue("s", draft);
        const claimed = await work.claimTurn(fence, { boundary: "idle" });
        await work.completeWithoutCommit(fence, claimed === undefined ? [] : [claimed.ref]);
      };
      expect(await after(rival, queue(database).enqueue.prepare("s", draft))).toMatchObject({
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
        await after(rival, queue(database).enqueue.prepare({ id, generation }, draft)),
      ).toMatchObject({ runs: again, code: "SESSION_DELETED" });
    }),
  );
});
