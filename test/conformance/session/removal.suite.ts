import { describe, expect, test } from "vitest";
import { rows } from "../../../src/sql/operation.ts";
import { spelled, sql } from "../../../src/sql/statement.ts";
import { attachments } from "../../../src/stores/attachment/attachments.ts";
import type { Database } from "../../../src/sql/database.ts";
import { queue } from "../../../src/stores/queue/queue.ts";
import { ownTableNames } from "../../fixtures/schema.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { fullSession, holding, inFixture, said } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function sessionRemovalSuite(backend: Backend): void {
  const fixture: InFixture = (body) => inFixture(backend, body);
  describe("deleting a session", () => {
    deleteTests(fixture);
    waiterTests(fixture);
    eraseTests(fixture);
  });
}

/** Every row of every table, bytes as text. */
async function everything(database: Database): Promise<string> {
  const texts: string[] = [];
  for (const table of ownTableNames) {
    const found = await database.read("everything", () =>
      rows(sql`SELECT * FROM ${spelled({ sqlite: table, postgres: table })}`),
    );
    for (const row of found)
      for (const value of Object.values(row))
        texts.push(value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value));
  }
  return texts.join("\n");
}

function deleteTests(fixture: InFixture): void {
  test(
    "[A53] leaves a tombstone and may be repeated; creating again is the next generation with a fresh meta",
    fixture(async ({ store, clock }) => {
      expect(await store.delete("s")).toMatchObject({
        existed: false,
        rows: 0,
      });
      await store.create("s", { name: "Old" });
      expect(await store.delete("s")).toMatchObject({
        existed: true,
        generation: 1,
      });
      expect(await store.delete("s")).toMatchObject({
        existed: true,
        generation: 1,
        rows: 0,
      });
      expect(await store.open("s")).toBeUndefined();
      clock.advance(1);
      expect(await store.create("s")).toEqual({
        id: "s",
        generation: 2,
        existed: false,
      });
      expect(await store.meta("s")).toMatchObject({
        name: "s",
        createdAt: 1_001,
      });
      await store.delete({ id: "s", generation: 1 });
      expect(await store.open("s")).toEqual({ id: "s", generation: 2 });
    }),
  );

  test(
    "[A17] [AX17] a handle that was open across it can neither write nor read, and brings nothing back",
    fixture(async ({ store, leases, held, dump }) => {
      const { handle, fence, commit } = await held("s");
      await commit({ turn: "t1", nodes: [said("old")] });
      await store.delete(handle);
      const refused = async (): Promise<void> => {
        const before = await dump();
        for (const attempt of [
          () => commit({ turn: "t2", nodes: [said("ghost")] }),
          () => commit({ turn: "t1", nodes: [said("old")] }),
          () =>
            store.saveMeta(handle, {
              name: "ghost",
              model: null,
              cwd: null,
              relation: { kind: "root" },
            }),
          () => store.tombstone(handle, ["x"], { fence }),
          () => store.vacuum(handle),
          () => store.fork(handle, "f"),
          () => store.load(handle),
          () => store.graph(handle),
          () => store.usage(handle),
          () => leases.renew(fence),
        ])
          expect(await rejection(attempt())).toMatchObject({
            code: expect.stringMatching(/^(SESSION_DELETED|LEASE_LOST)$/),
          });
        expect(await dump()).toEqual(before);
      };
      await refused();
      expect(await store.open("s")).toBeUndefined();
      const again = await store.create("s");
      await refused();
      expect((await store.graph(again)).items).toEqual([]);
      const own = await holding(store, leases, again);
      expect(await own.commit({ turn: "t1", nodes: [said("new")] })).toMatchObject({
        kind: "committed",
        revision: 1,
      });
    }),
  );

  test(
    "removes everything it owned in slices, tells its progress, and leaves others alone",
    fixture(async (all) => {
      await fullSession(all, "other");
      const before = await all.dump();
      await fullSession(all, "s");
      const progress: number[] = [];
      const report = await all.store.delete("s", {
        rowsPerSlice: 1,
        onProgress: ({ rows: soFar }) => progress.push(soFar),
      });
      expect(report).toMatchObject({
        existed: true,
        generation: 1,
        blobs: 2,
        attachments: 1,
        sharedNodes: 0,
      });
      expect(progress.length).toBeGreaterThan(5);
      expect(progress.at(-1)).toBe(report.rows);
      const { sessions: found, leases: held, ...rest } = await all.dump();
      const { sessions: others, leases: otherHeld, ...otherRest } = before;
      expect(rest).toEqual(otherRest);
      expect(held?.slice(0, 1)).toEqual(otherHeld);
      expect(found?.slice(0, 1)).toEqual(others);
      expect(found?.[1]).toMatchObject({
        id: "s",
        deleted_at: 1_000,
        reclaimed_at: 1_000,
      });
    }),
  );

  test(
    "goes on when it is repeated after it was stopped, also by reclaim",
    fixture(async (all) => {
      await fullSession(all, "s");
      const stop = new AbortController();
      const stopped = (): Promise<unknown> =>
        all.store.delete("s", {
          rowsPerSlice: 1,
          signal: stop.signal,
          onProgress: () => stop.abort(),
        });
      expect(await rejection(stopped())).toMatchObject({ code: "ABORTED" });
      expect(await all.store.open("s")).toBeUndefined();
      await all.store.create("s");
      expect(await all.store.reclaim()).toMatchObject({ attachments: 1 });
      const { nodes, usage, turns, components, sessions: left } = await all.dump();
      expect([nodes, usage, turns, components]).toEqual([[], [], [], []]);
      expect(left).toMatchObject([
        { generation: 1, reclaimed_at: 1_000 },
        { generation: 2, deleted_at: null },
      ]);
    }),
  );
}

function waiterTests(fixture: InFixture): void {
  test(
    "wakes whoever waits for its work or its lease",
    fixture(async ({ store, database, leases, held }) => {
      const { handle } = await held("s");
      const bob = { owner: "bob", incarnation: "1", process: null };
      const waits = [queue(database).waitForWork(handle), leases.waitForLease(handle, bob)].map(
        (wait) => rejection(wait),
      );
      // Both have looked once and found nothing.
      await database.read("turn", function* () {
        yield* rows(sql`SELECT 1 AS one`);
      });
      await store.delete(handle);
      for (const error of await Promise.all(waits))
        expect(error).toMatchObject({ code: "SESSION_DELETED" });
    }),
  );
}

function eraseTests(fixture: InFixture): void {
  test(
    "leaves no receipt, whatever the ids of turns",
    fixture(async ({ store, held, dump }) => {
      const { commit } = await held("s");
      for (const turn of ["t", "\u{10ffff}", "\u{10ffff}z"])
        await commit({ turn, nodes: [said("x")] });
      await store.erase("s", { rowsPerSlice: 1 });
      const { turns, sessions } = await dump();
      expect(turns).toEqual([]);
      expect(sessions).toMatchObject([{ reclaimed_at: 1_000 }]);
    }),
  );

  test(
    "erasing leaves nothing but id, generation and times",
    fixture(async (all) => {
      await fullSession(all, "s");
      expect(await all.store.erase("s")).toMatchObject({
        existed: true,
        generation: 1,
        blobs: 3,
        attachments: 1,
        sharedNodes: 0,
      });
      const { sessions: left, leases: held, ...rest } = await all.dump();
      expect(Object.values(rest).flat()).toEqual([]);
      expect(JSON.stringify(held)).not.toContain("alice");
      const bytes = await all.database.read("bytes", () =>
        rows(sql`SELECT name FROM holdfast_attachment_bytes`),
      );
      expect(bytes).toEqual([]);
      expect(left).toEqual([
        {
          key: expect.any(Number) as number,
          id: "s",
          generation: 1,
          created_at: 1_000,
          deleted_at: 1_000,
          reclaimed_at: 1_000,
          importing_at: null,
          origin: null,
          name: null,
          model: null,
          cwd: null,
          parent: null,
          caused_by: null,
          forked_from: null,
          fork_node: null,
          fork_top: null,
          revision: 3,
          leaf: null,
          config: null,
          current_frame: null,
          agent: null,
          turns: 0,
          open_turn: null,
          turn_due_at: null,
          turn_batch: null,
          stop_turn: null,
          node_count: 0,
          user_message_count: 0,
          first_user_message: null,
          active_at: 1_000,
        },
      ]);
    }),
  );

  test.each(["delete", "erase"] as const)(
    "%s leaves nothing of what commits had replaced before, in any table",
    (removal) =>
      fixture(async (all) => {
        const { handle, commit } = await all.held("s");
        for (const round of [1, 2, 3]) {
          all.clock.advance(10);
          const file = await attachments(all.database).put(
            handle,
            new TextEncoder().encode(`SECRET file ${round}`),
            { mediaType: "text/plain" },
          );
          await commit({
            turn: `t${round}`,
            nodes: [said(`SECRET ${round}`)],
            components: {
              replaced: { version: 1, value: `SECRET part ${round}` },
              removed: round === 3 ? null : { version: 1, value: `SECRET gone ${round}` },
            },
            frames: [
              {
                id: round === 3 ? "other" : "frame",
                reason: "SECRET",
                state: `SECRET state ${round}`,
              },
            ],
            attachments: [file.id],
          });
        }
        expect((await all.dump())["blobs"]).toHaveLength(2);
        // A clock that stands behind the one that wrote.
        all.clock.set(500);
        expect(await all.store[removal]("s")).toMatchObject({
          blobs: 2,
          attachments: 3,
          bytesPending: 0,
          processes: {
            revoked: 0,
            wakes: 0,
            orphaned: [],
            preserved: [],
            hasMore: false,
          },
        });
        expect(await everything(all.database)).not.toContain("SECRET");
      })(),
  );

  test(
    "a blob that one session replaces and another one refers to stays",
    fixture(async (all) => {
      const one = await all.held("one");
      const two = await all.held("two");
      const components = { c: { version: 1, value: "common" } };
      await one.commit({ turn: "t1", components });
      await two.commit({
        turn: "t1",
        frames: [{ id: "f", reason: "root", state: "common" }],
      });
      await one.commit({
        turn: "t2",
        components: { c: { version: 1, value: "own" } },
      });
      expect(await all.store.head("two")).toMatchObject({
        frames: [{ state: "common" }],
      });
      await one.commit({
        turn: "t3",
        components: { c: null, d: { version: 1, value: "own" } },
      });
      expect(await all.store.components("one")).toMatchObject({
        d: { value: "own" },
      });
    }),
  );

  test(
    "[AX15] a blob that another session's frame or checkpoint refers to stays",
    fixture(async (all) => {
      await fullSession(all, "s");
      const [first] = (await all.store.graph("s")).items;
      await all.store.fork("s", "f", {
        node: first?.id ?? "",
        withState: true,
      });
      await all.store.erase("s");
      expect(await all.store.load("f")).toMatchObject({
        head: { frames: [{ state: { of: "s" } }] },
        components: { own: { value: "of s" }, common: { value: "of all" } },
      });
      expect((await all.dump())["blobs"]).toHaveLength(3);
    }),
  );

  test(
    "attachments that a fork shares stay when its source is erased",
    fixture(async (all) => {
      await fullSession(all, "s");
      const [first] = (await all.store.graph("s")).items;
      const fork = await all.store.fork("s", "f", { node: first?.id ?? "" });
      await all.store.erase("s");
      const files = attachments(all.database);
      const [file] = (await files.list(fork)).items;
      const { content } = await files.get(fork, file?.id ?? "");
      expect(new TextDecoder().decode(content)).toBe("file of s");
    }),
  );

  test(
    "sizes tells what a session takes",
    fixture(async (all) => {
      await fullSession(all, "s");
      expect(await all.store.sizes("s")).toMatchObject({
        nodes: { count: 3, bytes: 17 + 21 + 15 },
        frames: { count: 1 },
        components: { count: 2 },
        turns: { count: 2 },
        usage: { count: 1 },
        blobs: { count: 3, bytes: 6 + 8 + 10 },
        attachments: { count: 1, bytes: 9 },
      });
      expect(await rejection(all.store.sizes("gone"))).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
    }),
  );
}
