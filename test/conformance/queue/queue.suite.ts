import type { Page } from "../../../src/kernel.ts";
import type { ListedBatch } from "../../../src/stores/queue/read.ts";
import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  acquired,
  ada,
  bob,
  createSession,
  enqueued,
  inSession,
  listed,
  named,
  otherHandles,
  stored,
} from "../lease/leased-sessions.ts";
import type { InFixture } from "../lease/leased-sessions.ts";

export function queueSuite(backend: Backend): void {
  const fixture = inSession(backend);
  describe("enqueuing", () => {
    refusalTests(fixture);
    enqueueTests(fixture);
  });
  describe("remembering what left the queue", () => {
    memoryTests(fixture);
  });
  describe("listing and cancelling", () => {
    listTests(fixture);
  });
  test(
    "[A42] of two processes, or two handles in memory, that claim one batch at once, one gets it and completes it",
    fixture(async (mine) => {
      const theirs = await otherHandles(mine);
      expect(theirs.queue).not.toBe(mine.queue);
      // Both hold it: they are one incarnation.
      const leases = [await acquired(mine), await acquired(theirs)] as const;
      expect(leases[1].token).toBe(leases[0].token);
      for (let round = 0; round < 10; round += 1) {
        await enqueued(mine, `${round}`);
        const claims = await Promise.all([
          mine.queue.claimTurn(leases[0]),
          theirs.queue.claimTurn(leases[1]),
        ]);
        const won = claims.map((claim) => named(claim?.batches));
        expect(won.toSorted()).toEqual(["", `${round}`]);
        for (const [index, { queue }] of [mine, theirs].entries()) {
          const ref = claims[index]?.ref;
          if (ref) await queue.completeWithoutCommit(leases[0], [ref]);
        }
        expect(await listed(mine)).toBe("");
      }
    }),
  );
}

function refusalTests(fixture: InFixture): void {
  test(
    "[AX3] an empty or mixed batch is refused, and the queue stays claimable",
    fixture(async (at) => {
      const { queue, database } = at;
      const before = await stored(database);
      const refused = async (draft: object): Promise<void> => {
        expect(await rejection(queue.enqueue("s", draft as never))).toMatchObject({
          code: "BATCH_INVALID",
          retryable: false,
        });
      };
      const item = { kind: "input", payload: 1 };
      await refused({ items: [] });
      await refused({ items: [item, { ...item, class: "command" }] });
      await refused({ items: [{ ...item, class: "other" }] });
      await refused({ items: Array.from({ length: 257 }, () => item) });
      await refused({ items: [item], delivery: "soon" });
      await refused({ items: [item], slot: "any" });
      expect(await stored(database)).toEqual(before);
      await enqueued(at, "a");
      const claim = await queue.claimTurn(await acquired(at));
      expect(named(claim?.batches)).toBe("a");
    }),
  );

  test.each<[string, string, object]>([
    ["a payload that cannot be stored", "NOT_SERIALIZABLE", { payload: () => 1 }],
    ["an item without a kind", "NAME_INVALID", { kind: "" }],
  ])("%s is refused and leaves nothing", (_, code, item) =>
    fixture(async ({ queue, database }) => {
      const before = await stored(database);
      const items = [
        { kind: "input", payload: "first" },
        { kind: "input", payload: 1, ...item },
      ];
      expect(await rejection(queue.enqueue("s", { items }))).toMatchObject({
        code,
      });
      expect(await stored(database)).toEqual(before);
    })(),
  );

  test(
    "a bad source, merge key, instant or session is refused",
    fixture(async ({ queue, database }) => {
      const before = await stored(database);
      const items = [{ kind: "input", payload: 1 }];
      for (const [code, draft] of [
        ["NAME_INVALID", { source: "" }],
        ["NAME_INVALID", { source: { process: "", sequence: 1 } }],
        ["OPTION_INVALID", { source: { process: "p", sequence: 1.5 } }],
        ["NAME_INVALID", { mergeKey: "a\0" }],
        ["OPTION_INVALID", { availableAt: -1 }],
        ["OPTION_INVALID", { availableAt: 2 ** 53 }],
      ] as const)
        expect(await rejection(queue.enqueue("s", { items, ...draft }))).toMatchObject({ code });
      expect(await rejection(queue.enqueue("none", { items }))).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
      expect(await rejection(queue.enqueue({ id: "s", generation: 2 }, { items }))).toMatchObject({
        code: "SESSION_DELETED",
      });
      expect(await stored(database)).toEqual(before);
    }),
  );
}

function enqueueTests(fixture: InFixture): void {
  test(
    "[A31] again from the same source returns the first batch unchanged, whatever it carries",
    fixture(async ({ queue, database }) => {
      await createSession(database, "t");
      const draft = (payload: string) => ({
        items: [{ kind: "input", payload }],
        source: "host:1",
      });
      const first = await queue.enqueue("s", draft("first"));
      expect(first).toMatchObject({
        kind: "queued",
        batch: {
          source: "host:1",
          class: "turn",
          delivery: "earliestSafeBoundary",
          slot: "exclusive",
          mergeKey: null,
          availableAt: 0,
          enqueuedAt: 1_000,
          items: [{ kind: "input", payload: "first" }],
        },
      });
      const again = await queue.enqueue("s", {
        ...draft("second"),
        slot: "join",
      });
      expect(again).toEqual({ ...first, kind: "duplicate" });
      expect(await queue.enqueue("t", draft("other"))).toMatchObject({
        kind: "queued",
        batch: { items: [{ payload: "other" }] },
      });
    }),
  );

  test(
    "[A31] keeps the order, in every session its own",
    fixture(async (at) => {
      const { queue, database } = at;
      await createSession(database, "t");
      for (const name of ["a", "b", "c"]) {
        await enqueued(at, name);
        await queue.enqueue("t", { items: [{ kind: "other", payload: name }] });
      }
      expect(await listed(at)).toBe("a b c");
      const { items: batches } = await queue.list("t");
      expect(batches.map(({ items }) => items[0]?.kind)).toEqual(["other", "other", "other"]);
    }),
  );

  test(
    "keeps all items of a batch in order, with kinds and values",
    fixture(async ({ queue }) => {
      const items = [
        { kind: "text", payload: "hello" },
        {
          kind: "file",
          payload: { bytes: Uint8Array.of(1, 2), at: new Date(5) },
        },
        { kind: "nothing", payload: undefined },
      ];
      await queue.enqueue("s", { items });
      const { items: batches } = await queue.list("s");
      const [id = ""] = batches.map((batch) => batch.id);
      expect(batches[0]?.items).toEqual(
        items.map((item, index) => ({ id: `${id}.${index}`, ...item })),
      );
    }),
  );

  test(
    "[AX2] without a source gives two batches, though the clock stands still and two processes, or two handles in memory, enqueue at once",
    fixture(async (mine) => {
      const theirs = await otherHandles(mine);
      expect(theirs.queue).not.toBe(mine.queue);
      const outcomes = await Promise.all(
        [mine, theirs].flatMap((each) => [enqueued(each, "a"), enqueued(each, "a")]),
      );
      expect(new Set(outcomes.map(({ id }) => id)).size).toBe(4);
      expect(new Set(outcomes.map(({ order }) => order)).size).toBe(4);
      expect(outcomes.map(({ enqueuedAt }) => enqueuedAt)).toEqual([1_000, 1_000, 1_000, 1_000]);
      expect(await listed(theirs)).toBe("a a a a");
    }),
  );
}

function memoryTests(fixture: InFixture): void {
  const wake = { process: "p", sequence: 2 };

  test(
    "[A40] a wake enqueued twice is stored once, claimed once, and consumed after its completion",
    fixture(async (at) => {
      const { queue } = at;
      const draft = { items: [{ kind: "wake", payload: "up" }], source: wake };
      expect(await queue.enqueue("s", draft)).toMatchObject({ kind: "queued" });
      expect(await queue.enqueue("s", draft)).toMatchObject({
        kind: "duplicate",
        batch: { source: wake },
      });
      const lease = await acquired(at);
      const claim = await queue.claimTurn(lease);
      expect(claim?.batches).toMatchObject([
        { source: wake, items: [{ kind: "wake", payload: "up" }] },
      ]);
      if (claim) await queue.completeWithoutCommit(lease, [claim.ref]);
      expect(await listed(at)).toBe("");
      expect(await queue.enqueue("s", draft)).toEqual({ kind: "consumed" });
      // The mark says it for all before, and for nobody else.
      for (const [source, kind] of [
        [{ process: "p", sequence: 1 }, "consumed"],
        [{ process: "p", sequence: 3 }, "queued"],
        [{ process: "q", sequence: 1 }, "queued"],
      ] as const)
        expect((await queue.enqueue("s", { ...draft, source })).kind).toBe(kind);
    }),
  );

  test(
    "[A40] the mark of a process stays where its highest wake was, also when an earlier one leaves later",
    fixture(async (at) => {
      const { queue } = at;
      const items = [{ kind: "wake", payload: "up" }];
      const of = (sequence: number) => ({ items, source: { process: "p", sequence } });
      for (const sequence of [1, 3]) await queue.enqueue("s", of(sequence));
      const { items: batches } = await queue.list("s");
      for (const { id } of batches.toReversed()) await queue.cancel("s", id);
      expect(await listed(at)).toBe("");
      for (const sequence of [1, 2, 3])
        expect(await queue.enqueue("s", of(sequence))).toEqual({ kind: "consumed" });
      expect((await queue.enqueue("s", of(4))).kind).toBe("queued");
    }),
  );

  test(
    "[AX6] a source key is not delivered again after completion, nor after cancellation",
    fixture(async (at) => {
      const { queue, clock } = at;
      const items = [{ kind: "input", payload: "a" }];
      const lease = await acquired(at, ada, 100 * 24 * 3_600_000);
      await queue.enqueue("s", { items, source: "done" });
      const claim = await queue.claimTurn(lease);
      if (claim) await queue.completeWithoutCommit(lease, [claim.ref]);
      const cancelled = await enqueued(at, "a", { source: "cancelled" });
      await queue.cancel("s", cancelled.id);
      for (const source of ["done", "cancelled"])
        expect(await queue.enqueue("s", { items, source })).toEqual({
          kind: "consumed",
        });
      // Others do not care, and the memory of 30 days ends.
      await createSession(at.database, "t");
      expect((await queue.enqueue("t", { items, source: "done" })).kind).toBe("queued");
      clock.advance(30 * 24 * 3_600_000 - 1);
      expect((await queue.enqueue("s", { items, source: "done" })).kind).toBe("consumed");
      clock.advance(1);
      expect((await queue.enqueue("s", { items, source: "done" })).kind).toBe("queued");
    }),
  );

  test(
    "forgets old source keys in slices, and nothing else",
    fixture(async (at) => {
      const { queue, clock, database } = at;
      for (let index = 0; index < 7; index += 1) {
        const { id } = await enqueued(at, "a", { source: `old ${index}` });
        await queue.cancel("s", id);
      }
      clock.advance(30 * 24 * 3_600_000 - 1);
      expect(await queue.purgeSourceKeys()).toEqual({ sourceKeys: 0 });
      const { id } = await enqueued(at, "a", { source: "new" });
      await queue.cancel("s", id);
      clock.advance(1);
      expect(await queue.purgeSourceKeys({ rowsPerSlice: 3 })).toEqual({
        sourceKeys: 7,
      });
      expect(await queue.purgeSourceKeys({ rowsPerSlice: 3 })).toEqual({
        sourceKeys: 0,
      });
      expect(JSON.stringify(await stored(database))).toContain('"new"');
    }),
  );
}

function listTests(fixture: InFixture): void {
  test(
    "[A32] cancelling returns what nobody has claimed; a claimed batch stays until it is given back",
    fixture(async (at) => {
      const { queue } = at;
      const a = await enqueued(at, "a");
      const b = await enqueued(at, "b");
      expect(await queue.cancel("s", "unknown")).toBeUndefined();
      expect(await queue.cancel("s", a.id)).toEqual(a);
      expect(await queue.cancel("s", a.id)).toBeUndefined();
      const claim = await queue.claimTurn(await acquired(at));
      expect(await queue.cancel("s", b.id)).toBeUndefined();
      expect(await listed(at, "pending")).toBe("");
      const { items: batches } = await queue.list("s");
      expect(batches).toEqual([{ ...b, isClaimed: true }]);
      // The token of a claim is the claimant's alone.
      expect(JSON.stringify(batches)).not.toContain(claim?.ref.claim);
      if (claim) expect(await queue.abandon("s", claim.ref)).toBe(1);
      expect(await listed(at, "pending")).toBe("b");
      expect(await queue.cancel("s", b.id)).toEqual(b);
      expect(await listed(at)).toBe("");
    }),
  );

  test(
    "[A32] a claim counts no longer when its lease has run out or was given back",
    fixture(async (at) => {
      const { queue, leases, clock } = at;
      await enqueued(at, "a");
      const lease = await acquired(at, ada, 10);
      await queue.claimTurn(lease);
      expect(await listed(at, "pending")).toBe("");
      clock.advance(10);
      expect(await listed(at, "pending")).toBe("a");
      const next = await acquired(at, bob);
      await queue.claimTurn(next);
      expect(await listed(at, "pending")).toBe("");
      await leases.release(next);
      expect(await listed(at, "pending")).toBe("a");
    }),
  );

  test(
    "lists in pages that fit together",
    fixture(async (at) => {
      const { queue } = at;
      for (const name of ["a", "b", "c", "d", "e"]) await enqueued(at, name);
      const lease = await acquired(at);
      await queue.claimTurn(lease);
      const pages: string[] = [];
      for (let after: string | undefined = ""; after !== undefined;) {
        const page: Page<ListedBatch> = await queue.list("s", {
          state: "pending",
          limit: 2,
          ...(after !== "" && { after }),
        });
        pages.push(named(page.items));
        after = page.next;
      }
      expect(pages).toEqual(["b c", "d e"]);
      for (const options of [{ limit: 0 }, { limit: 1_001 }])
        expect(await rejection(queue.list("s", options))).toMatchObject({
          code: "OPTION_INVALID",
        });
      const { next = "" } = await queue.list("s", { limit: 2 });
      // The same session, by its handle.
      const behind = await queue.list(lease.session, { after: next });
      expect(named(behind.items)).toBe("c d e");
      for (const options of [{ after: "-1" }, { after: next, state: "pending" }] as const)
        expect(await rejection(queue.list("s", options))).toMatchObject({
          code: "CURSOR_INVALID",
        });
    }),
  );
}
