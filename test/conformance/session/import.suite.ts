import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { exportSession, importSession, openSqlite } from "../../../src/sqlite.ts";
import { attachments } from "../../../src/stores/attachment/attachments.ts";
import type { Database } from "../../../src/sql/database.ts";
import { sessions } from "../../../src/stores/session/sessions.ts";
import { driverName } from "../../sqlite/place.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { fullSession, holding, inFixture, said } from "./fixture.ts";
import type { SessionFixture } from "./fixture.ts";

const sqlite = { driver: driverName } as const;

/** A session that comes from a file while others work. */
export function sessionImportSuite(backend: Backend): void {
  const fixture = (body: (fixture: SessionFixture, path: string) => Promise<void>) => async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-import-"));
    try {
      await inFixture(backend, async (all) => {
        await fullSession(all, "s");
        const to = join(folder, "s.db");
        await exportSession(all.database, "s", to, { sqlite });
        await all.store.erase("s");
        await body(all, to);
      })();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  describe("a session that is imported", () => {
    meanwhileTests(fixture);
    contentTests(fixture);
  });
}

type InFixture = (
  body: (fixture: SessionFixture, path: string) => Promise<void>,
) => () => Promise<void>;

/** A database that does something before each write of one operation. */
function before(database: Database, operation: string, action: () => Promise<unknown>): Database {
  return new Proxy(database, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name !== "write") return value.bind(target) as unknown;
      return async (callee: { readonly name?: string }, ...rest: unknown[]) => {
        if (callee.name === operation) await action();
        return (value as (...all: unknown[]) => unknown).call(target, callee, ...rest);
      };
    },
  });
}

function meanwhileTests(fixture: InFixture): void {
  test(
    "comes after every generation there is at its end, and so do its fences",
    fixture(async (all, path) => {
      const { store, leases } = all;
      const database = before(all.database, "endSessionCopy", async () => {
        const { fence } = await holding(store, leases, await store.create("s"));
        expect(fence.fence).toBe(2);
        await store.delete("s");
      });
      const back = await importSession(database, path, { sqlite });
      expect(back).toEqual({ id: "s", generation: 3, existed: false });
      expect(await store.open("s")).toEqual({ id: "s", generation: 3 });
      const { fence } = await holding(store, leases, back);
      expect(fence.fence).toBe(3);
      expect(await store.delete("s")).toMatchObject({ generation: 3 });
      expect(await store.open("s")).toBeUndefined();
    }),
  );

  test(
    "is refused at its end when somebody has created one meanwhile, and leaves nothing",
    fixture(async (all, path) => {
      const database = before(all.database, "endSessionCopy", () => all.store.create("s"));
      expect(await rejection(importSession(database, path, { sqlite }))).toMatchObject({
        code: "SESSION_EXISTS",
      });
      const { sessions: left, nodes, blobs, attachments: files } = await all.dump();
      expect(left).toMatchObject([{ generation: 1 }, { generation: 2 }]);
      expect([nodes, blobs, files]).toEqual([[], [], []]);
    }),
  );

  test(
    "again is found as what it became, also when somebody imports it at the same time; another one is not",
    fixture(async (all, path) => {
      const first = await importSession(all.database, path, { sqlite });
      expect(first).toEqual({ id: "s", generation: 2, existed: false });
      const own = await holding(all.store, all.leases, first);
      await own.commit({ turn: "later", nodes: [said("on")] });
      const left = await all.dump();
      const again = { ...first, existed: true };
      expect(await importSession(all.database, path, { sqlite })).toEqual(again);
      expect(await all.dump()).toEqual(left);
      const next = `${path}.later`;
      await exportSession(all.database, "s", next, { sqlite });
      expect(await rejection(importSession(all.database, next, { sqlite }))).toMatchObject({
        code: "SESSION_EXISTS",
      });
      await all.store.delete("s");
      const database = before(all.database, "endSessionCopy", () =>
        importSession(all.database, path, { sqlite }),
      );
      expect(await importSession(database, path, { sqlite })).toEqual({
        id: "s",
        generation: 3,
        existed: true,
      });
      expect((await all.dump())["nodes"]).toHaveLength(2);
    }),
  );

  test(
    "has its attachments before anybody sees it",
    fixture(async (all, path) => {
      let looked = 0;
      const database = before(all.database, "endSessionCopy", async () => {
        looked += 1;
        expect(await all.store.open("s")).toBeUndefined();
        expect((await all.dump())["attachments"]).toMatchObject([{ committed_at: 1_000 }]);
      });
      const back = await importSession(database, path, { sqlite });
      expect(looked).toBe(1);
      expect((await attachments(all.database).list(back)).items).toHaveLength(1);
    }),
  );

  test(
    "is let alone by reclaim while it goes on, and removed by it an hour after its last step",
    fixture(async (all, path) => {
      const { store, clock } = all;
      const going = before(all.database, "sessionTurnsIn", async () => {
        clock.advance(3_599_999);
        expect(await store.reclaim({ rowsPerSlice: 1 })).toMatchObject({
          rows: 0,
        });
        await store.erase("s");
      });
      const back = await importSession(going, path, { sqlite });
      expect(Object.keys(await store.components(back))).toEqual(["common", "own"]);
      await store.erase("s");
      const stopped = before(all.database, "sessionTurnsIn", async () => {
        clock.advance(3_600_000);
        expect(await store.reclaim()).toMatchObject({ blobs: 3 });
      });
      expect(await rejection(importSession(stopped, path, { sqlite }))).toMatchObject({
        code: "TRANSACTION_CONFLICT",
      });
      const { sessions: left, nodes, blobs } = await all.dump();
      expect([nodes, blobs]).toEqual([[], []]);
      expect(left).toMatchObject([{ generation: 1 }, { generation: 2 }]);
    }),
  );

  test(
    "is refused when a sweep takes an attachment before the copy refers to it",
    fixture(async (all, path) => {
      const files = attachments(all.database);
      const swept = {
        ...files,
        commit: Object.assign(async (...given: Parameters<typeof files.commit>) => {
          await files.sweep({ olderThan: 0 });
          return files.commit(...given);
        }, files.commit),
      };
      expect(
        await rejection(importSession(all.database, path, { sqlite, attachments: swept })),
      ).toMatchObject({ code: "TRANSACTION_CONFLICT" });
      expect(await all.store.open("s")).toBeUndefined();
      expect((await all.dump())["nodes"]).toEqual([]);
    }),
  );

  test(
    "is not made the living one when parts of it are gone",
    fixture(async (all, path) => {
      for (const loss of [
        sql`DELETE FROM holdfast_session_component WHERE session > 1`,
        sql`DELETE FROM holdfast_session_frame WHERE session > 1`,
        sql`DELETE FROM holdfast_session_turn WHERE session > 1`,
        sql`DELETE FROM holdfast_attachment WHERE session > 1`,
      ]) {
        const database = before(all.database, "endSessionCopy", () =>
          all.database.write("lose", function* () {
            yield* run(loss);
          }),
        );
        expect(await rejection(importSession(database, path, { sqlite }))).toMatchObject({
          code: "TRANSACTION_CONFLICT",
        });
        expect(await all.store.open("s")).toBeUndefined();
      }
    }),
  );
}

function contentTests(fixture: InFixture): void {
  test(
    "needs no key to what is encrypted in it",
    fixture(async (all, path) => {
      const payload = {
        name: "sealed",
        encode: (text: string) => `sealed:${btoa(text)}`,
        decode: (text: string) =>
          text.startsWith("sealed:") ? atob(text.slice("sealed:".length)) : text,
        hash: (text: string) => `keyed-${text.length}`,
      };
      const sealed = sessions(all.database, { payload });
      const { id, generation } = await sealed.create("sealed");
      const own = await holding(sealed, all.leases, { id, generation });
      await own.commit({
        turn: "t1",
        nodes: [{ kind: "message", role: "user", payload: { text: "hi" } }],
        components: { c: { version: 1, value: "part" } },
      });
      const to = `${path}.sealed`;
      await exportSession(all.database, "sealed", to, { sqlite });
      await importSession(all.database, to, { sqlite, id: "back" });
      expect(await sealed.load("back")).toMatchObject({
        path: { nodes: [{ payload: { text: "hi" } }] },
        components: { c: { value: "part" } },
      });
    }),
  );

  test(
    "is refused with a blob that is not what its hash says, which then harms nobody",
    fixture(async (all, path) => {
      const file = await openSqlite(path, sqlite);
      await file.write("spoil", function* () {
        yield* run(sql`UPDATE holdfast_blob SET content = ${Uint8Array.of(1)}`);
      });
      await file.close();
      const state = await all.dump();
      expect(await rejection(importSession(all.database, path, { sqlite }))).toMatchObject({
        code: "CORRUPT_ROW",
        details: { table: "holdfast_blob" },
      });
      expect(await all.dump()).toEqual(state);
    }),
  );
}
