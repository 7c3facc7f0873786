import { describe, expect, test } from "vitest";
import { queue } from "../../../src/stores/queue/queue.ts";
import { sessions } from "../../../src/stores/session/sessions.ts";
import { attachments } from "../../../src/stores/attachment/attachments.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { answered, inFixture, said, spent } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function sessionTurnsSuite(backend: Backend): void {
  const fixture: InFixture = (body) => inFixture(backend, body);
  describe("a turn that is refused changes nothing", () => {
    claimTests(fixture);
    revisionTests(fixture);
    contentTests(fixture);
  });
  describe("a turn committed again", () => {
    replayTests(fixture);
  });
}

function claimTests(fixture: InFixture): void {
  test(
    "[A16] a queue claim that does not count refuses the whole turn; corrected it succeeds, and again it is replayed",
    fixture(async ({ database, clock, held, dump }) => {
      const { handle, fence, commit } = await held("s");
      const work = queue(database);
      await work.enqueue(handle, {
        items: [{ kind: "input", payload: "hello" }],
      });
      const claimed = await work.claimTurn(fence, { boundary: "idle" });
      const ref = claimed?.ref ?? { claim: "", batches: [] };
      expect(ref.batches).toHaveLength(1);
      const turn = {
        turn: "t1",
        nodes: [said("hello")],
        components: { tools: { version: 1, value: { n: 1 } } },
        usage: [spent("chat", "m", 1)],
        claims: [ref],
      };
      const before = await dump();
      const stale = [{ ...ref, claim: "another" }];
      expect(await rejection(commit({ ...turn, claims: stale }))).toMatchObject({
        code: "CLAIM_LOST",
        retryable: true,
      });
      expect(await dump()).toEqual(before);
      expect(await commit(turn)).toMatchObject({
        kind: "committed",
        revision: 1,
      });
      const after = await dump();
      expect(after["batches"]).toEqual([]);
      clock.advance(5);
      expect(await commit(turn)).toMatchObject({
        kind: "replayed",
        revision: 1,
      });
      expect(await dump()).toEqual(after);
    }),
  );
}

function revisionTests(fixture: InFixture): void {
  test(
    "a revision that was overtaken is named with the actual one",
    fixture(async ({ held, dump }) => {
      const { commit } = await held("s");
      await commit({ turn: "t1", expectedRevision: 0, nodes: [said("one")] });
      const before = await dump();
      expect(
        await rejection(commit({ turn: "t2", expectedRevision: 0, nodes: [said("two")] })),
      ).toMatchObject({
        code: "REVISION_CONFLICT",
        retryable: true,
        details: { session: "s", expected: 0, actual: 1 },
      });
      expect(await dump()).toEqual(before);
    }),
  );

  test(
    "[A11] of two handles that commit on revision 0 at once exactly one wins, the other is told the revision",
    fixture(async ({ place, clock, database, store, held }) => {
      const { handle, fence } = await held("s");
      const other =
        database.durability === "memory" ? store : sessions(await place.open({ clock }));
      const outcomes = await Promise.allSettled(
        [store, other].map((each, index) =>
          each.commit(handle, {
            turn: `t${index}`,
            fence,
            expectedRevision: 0,
            nodes: [said(`from ${index}`)],
          }),
        ),
      );
      const won = outcomes.filter(({ status }) => status === "fulfilled");
      const lost = outcomes.filter(({ status }) => status === "rejected");
      expect(won).toHaveLength(1);
      expect(lost).toMatchObject([
        { reason: { code: "REVISION_CONFLICT", details: { actual: 1 } } },
      ]);
      expect((await store.head(handle)).revision).toBe(1);
    }),
  );
}

function contentTests(fixture: InFixture): void {
  test(
    "[A7] a handle commits only to its own session and generation, and sessions do not see each other",
    fixture(async ({ store, held, dump }) => {
      const a = await held("a");
      const b = await held("b");
      const before = await dump();
      expect(
        await rejection(
          store.commit(a.handle, {
            turn: "t1",
            session: "b",
            fence: a.fence,
            nodes: [said("hi")],
          }),
        ),
      ).toMatchObject({
        code: "SESSION_MISMATCH",
        details: { session: "a", attempted: "b" },
      });
      expect(
        await rejection(
          store.commit({ ...a.handle, generation: 2 }, { turn: "t1", fence: a.fence }),
        ),
      ).toMatchObject({ code: "SESSION_DELETED" });
      expect(await rejection(store.commit(a.handle, { turn: "t1", fence: b.fence }))).toMatchObject(
        { code: "LEASE_LOST" },
      );
      expect(await dump()).toEqual(before);
      const first = await a.commit({
        turn: "t1",
        nodes: [said("in a", { id: "n" })],
      });
      await b.commit({ turn: "t1", nodes: [said("in b", { id: "n" })] });
      expect(first.kind).toBe("committed");
      expect((await store.graph("a")).items).toMatchObject([
        { id: "n", payload: { text: "in a" } },
      ]);
      expect((await store.graph("b")).items).toMatchObject([
        { id: "n", payload: { text: "in b" } },
      ]);
    }),
  );

  test(
    "a value that cannot be stored refuses the turn and says where it is",
    fixture(async ({ held, dump }) => {
      const { commit } = await held("s");
      const before = await dump();
      const turn = { turn: "t1", nodes: [said("fine")] };
      expect(
        await rejection(
          commit({
            ...turn,
            components: { tools: { version: 1, value: { run: () => 1 } } },
          }),
        ),
      ).toMatchObject({
        code: "NOT_SERIALIZABLE",
        details: { path: "$.run" },
      });
      expect(await rejection(commit({ ...turn, usage: [spent("chat", "m", -1)] }))).toMatchObject({
        code: "TURN_INVALID",
        details: { part: "usage" },
      });
      expect(
        await rejection(commit({ ...turn, usage: [spent("chat", "m", 2 ** 53)] })),
      ).toMatchObject({ code: "TURN_INVALID" });
      expect(
        await rejection(
          commit({
            turn: "t1",
            nodes: Array.from({ length: 1_001 }, () => said("x")),
          }),
        ),
      ).toMatchObject({
        code: "TURN_INVALID",
        details: { part: "nodes", count: 1_001, max: 1_000 },
      });
      expect(await dump()).toEqual(before);
    }),
  );

  test(
    "[AX20] times beyond 2^53 are refused, never wrapped",
    fixture(async ({ database, held, dump }) => {
      const { handle, fence } = await held("s");
      const before = await dump();
      for (const now of [2 ** 53, 2 ** 63, -(2 ** 60)]) {
        const broken = sessions(database, {
          clock: { now: () => now, wakeAt: () => () => undefined },
        });
        const error = await rejection(
          broken.commit(handle, { turn: "t1", fence, nodes: [said("hi")] }),
        );
        expect(error.code).toMatch(/^(OPTION_INVALID|LEASE_LOST)$/);
        expect(await rejection(broken.create("new"))).toMatchObject({
          code: "PARAMETER_INVALID",
        });
      }
      expect(await dump()).toEqual(before);
    }),
  );
}

function replayTests(plain: InFixture): void {
  // Every session has the attachment that its turn refers to.
  const fixture: InFixture = (body) =>
    plain((all) =>
      body({
        ...all,
        held: async (id) => {
          const session = await all.held(id);
          await attachments(all.database).put(session.handle, Uint8Array.from([1]), {
            mediaType: "image/png",
          });
          return session;
        },
      }),
    );
  const turn = {
    turn: "t1",
    nodes: [said("hi"), answered("hello")],
    components: { tools: { version: 3, value: { n: 1 } } },
    usage: [spent("chat", "m", 10)],
    attachments: ["4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"],
    config: { provider: "p" },
  };

  test(
    "[A13] answers what it answered, without a lease and after the session has moved on",
    fixture(async ({ store, held, dump }) => {
      const { handle, commit } = await held("s");
      const first = await commit({ ...turn, expectedRevision: 0 });
      await commit({ turn: "t2", nodes: [said("more")], release: true });
      const before = await dump();
      const again = await store.commit(handle, turn);
      expect(again).toEqual({ ...first, kind: "replayed" });
      expect(again).toMatchObject({
        revision: 1,
        changed: { tools: { version: 3, revision: 1 } },
      });
      expect(await dump()).toEqual(before);
    }),
  );

  test(
    "[A13] still gives the lease back when asked",
    fixture(async ({ store, leases, held }) => {
      const { handle, fence, commit } = await held("s");
      await commit(turn);
      expect(await store.commit(handle, { ...turn, fence, release: true })).toMatchObject({
        kind: "replayed",
      });
      const next = await leases.acquire(handle, {
        owner: "bob",
        incarnation: "1",
        process: null,
      });
      expect(next.kind).toBe("acquired");
    }),
  );

  test(
    "[A14] with other content is refused, and the first part that differs is named",
    fixture(async ({ held, dump }) => {
      const { commit } = await held("s");
      await commit(turn);
      const before = await dump();
      const changes = [
        ["nodes", { nodes: [said("hi"), answered("bye")] }],
        ["nodes", { nodes: [said("hi"), answered("hello", { parent: null })] }],
        ["components", { components: { tools: { version: 3, value: 2 } } }],
        ["components", { components: { tools: null } }],
        ["usage", { usage: [spent("chat", "m", 11)] }],
        ["usage", { usage: [spent("chat", "m", 11)], attachments: [] }],
        ["claims", { claims: [{ claim: "c", batches: ["b"] }] }],
        ["attachments", { attachments: ["b".repeat(64)] }],
        ["head", { config: { provider: "q" } }],
      ] as const;
      for (const [part, change] of changes)
        expect(await rejection(commit({ ...turn, ...change }))).toMatchObject({
          code: "TURN_CONFLICT",
          retryable: false,
          details: { session: "s", turn: "t1", part },
        });
      expect(await dump()).toEqual(before);
    }),
  );

  test(
    "[A15] is the same whatever the revision, the fence, the time and the ids of its nodes",
    fixture(async ({ store, clock, held }) => {
      const { handle, commit } = await held("s");
      const first = await commit({ ...turn, expectedRevision: 0 });
      clock.advance(500);
      expect(
        await store.commit(handle, {
          ...turn,
          expectedRevision: 7,
          nodes: turn.nodes.map((node, index) => ({
            ...node,
            id: `n${index}`,
          })),
        }),
      ).toEqual({ ...first, kind: "replayed" });
    }),
  );
}
