import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqlite } from "../../../src/sqlite.ts";
import { driverName } from "../../sqlite/place.ts";
import { queue } from "../../../src/stores/queue/queue.ts";
import { sessions } from "../../../src/stores/session/sessions.ts";
import { rows, run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { answered, dumpOf, fullSession, holding, inFixture, said, fixtureOf } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function sessionsSuite(backend: Backend): void {
  const fixture: InFixture = (body) => inFixture(backend, body);
  describe("sessions of a database", () => {
    schemaTests(fixture, backend.survives);
    createTests(fixture);
  });
  describe("listing sessions", () => {
    listTests(fixture);
  });
  if (backend.survives)
    describe("a session after reopening", () => {
      reopenTests(fixture);
    });
}

function schemaTests(fixture: InFixture, survives: boolean): void {
  test(
    "[A4] receipts of turns have a table, and no table holds a turn in flight",
    fixture(async ({ database }) => {
      const found = await database.read("tables", () =>
        rows<{ name: string }>(
          database.dialect === "sqlite"
            ? sql`SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'holdfast_session%' ORDER BY name`
            : sql`SELECT DISTINCT tablename AS name FROM pg_tables WHERE tablename LIKE 'holdfast_session%' ORDER BY 1`,
        ),
      );
      const names = found.map(({ name }) => name);
      expect(names).toEqual([
        "holdfast_session",
        "holdfast_session_component",
        "holdfast_session_frame",
        "holdfast_session_lease",
        "holdfast_session_node",
        "holdfast_session_tombstone",
        "holdfast_session_turn",
        "holdfast_session_usage",
      ]);
    }),
  );

  test(
    "[A4] a receipt comes with its turn and goes with its session; a turn that is refused has none",
    fixture(async ({ store, held, dump }) => {
      const { handle, commit } = await held("s");
      const turnsOf = async (): Promise<unknown[]> =>
        ((await dump())["turns"] ?? []).map((row) => ("turn" in row ? row.turn : undefined));
      await rejection(store.commit(handle, { turn: "t0" }));
      await rejection(commit({ turn: "t0", leaf: { id: "nowhere" } }));
      expect(await turnsOf()).toEqual([]);
      await commit({ turn: "t1", nodes: [said("hi")] });
      await commit({ turn: "t1", nodes: [said("hi")] });
      await commit({ turn: "t2" });
      expect(await turnsOf()).toEqual(["t1", "t2"]);
      await store.delete(handle);
      expect(await turnsOf()).toEqual([]);
    }),
  );

  test(
    "[A5] the facade reports what its database promises: everything, less when told, nothing in memory",
    fixture(async ({ database, store }) => {
      const expected = survives ? "full" : "memory";
      expect(database.durability).toBe(expected);
      expect(store.durability).toBe(expected);
      const folder = mkdtempSync(join(tmpdir(), "holdfast-durability-"));
      const relaxed = await openSqlite(join(folder, "a.db"), {
        driver: driverName,
        durability: "normal",
      });
      expect(sessions(relaxed).durability).toBe("normal");
      await relaxed.close();
      rmSync(folder, { recursive: true, force: true });
    }),
  );
}

function createTests(fixture: InFixture): void {
  test(
    "ids, names and metas that cannot be are refused",
    fixture(async ({ store, dump }) => {
      const before = await dump();
      for (const id of ["", "  ", "x".repeat(257), "a\0b", "\ud800"])
        expect(await rejection(store.create(id))).toMatchObject({
          code: "ID_MALFORMED",
        });
      expect(await rejection(store.create("s", { name: "" }))).toMatchObject({
        code: "NAME_INVALID",
      });
      expect(
        await rejection(store.create("s", { relation: { kind: "child", of: "" } })),
      ).toMatchObject({ code: "ID_MALFORMED" });
      expect(await dump()).toEqual(before);
    }),
  );

  test(
    "[A53] creating seeds the meta once; creating again preserves what was saved; opening what is missing finds nothing",
    fixture(async ({ store, clock }) => {
      expect(await store.open("s")).toBeUndefined();
      expect(await store.create("s", { model: "one", cwd: "/work" })).toEqual({
        id: "s",
        generation: 1,
        existed: false,
      });
      expect(await store.meta("s")).toEqual({
        name: "s",
        model: "one",
        cwd: "/work",
        relation: { kind: "root" },
        createdAt: 1_000,
      });
      const own = {
        name: "Mine",
        model: "two",
        cwd: null,
        relation: { kind: "root" },
      } as const;
      await store.saveMeta("s", own);
      clock.advance(10);
      expect(await store.create("s", { model: "three" })).toEqual({
        id: "s",
        generation: 1,
        existed: true,
      });
      expect(await store.meta("s")).toEqual({ ...own, createdAt: 1_000 });
      expect(await store.open("s")).toEqual({ id: "s", generation: 1 });
    }),
  );

  test(
    "sixteen who create one session at once get the same one",
    fixture(async ({ store }) => {
      const created = await Promise.all(Array.from({ length: 16 }, () => store.create("s")));
      expect(new Set(created.map(({ generation }) => generation))).toEqual(new Set([1]));
      expect(created.filter(({ existed }) => !existed)).toHaveLength(1);
    }),
  );

  test(
    "[A17] the meta comes back with all its fields",
    fixture(async ({ store }) => {
      const { id, generation } = await store.create("parent");
      await store.create("child", {
        name: "Child — 名前",
        model: "m-1",
        cwd: "/tmp/ä",
        relation: { kind: "child", of: id, causedBy: "turn:7" },
      });
      expect(await store.meta("child")).toEqual({
        name: "Child — 名前",
        model: "m-1",
        cwd: "/tmp/ä",
        relation: { kind: "child", of: "parent", causedBy: "turn:7" },
        createdAt: 1_000,
      });
      expect(await store.meta({ id, generation })).toMatchObject({
        relation: { kind: "root" },
      });
    }),
  );

  test(
    "[AX18] a meta or a ledger that cannot be written is an error, and nothing of the call is",
    fixture(async ({ database, store, held, dump }) => {
      const { handle, commit } = await held("s");
      await database.write("damage", () =>
        run(sql`
          INSERT INTO holdfast_session_usage (session, turn, ordinal, at, source, model,
            input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens)
          SELECT key, 't1', 1, 1, 's', 'm', 0, 0, 0, 0, 0 FROM holdfast_session`),
      );
      const before = await dump();
      const usage = { source: "chat", model: "m", inputTokens: 1 };
      expect(
        await rejection(
          commit({
            turn: "t1",
            nodes: [said("hi")],
            components: { c: { version: 1, value: 1 } },
            usage: [usage, usage],
          }),
        ),
      ).toMatchObject({ code: "CONSTRAINT_VIOLATED" });
      expect(await dump()).toEqual(before);
      await database.write("damage", () =>
        run(sql`ALTER TABLE holdfast_session RENAME COLUMN caused_by TO gone`),
      );
      expect(
        await rejection(
          store.saveMeta(handle, {
            name: "new",
            model: "m",
            cwd: null,
            relation: { kind: "root" },
          }),
        ),
      ).toMatchObject({ code: "STATEMENT_FAILED" });
      expect((await dump())["sessions"]).toMatchObject([{ name: "s", model: null }]);
      await database.close();
    }),
  );

  test(
    "[AX18] saving the meta of a session that is not there, or no longer, fails",
    fixture(async ({ store, dump }) => {
      const meta = {
        name: "n",
        model: null,
        cwd: null,
        relation: { kind: "root" },
      } as const;
      expect(await rejection(store.saveMeta("s", meta))).toMatchObject({
        code: "SESSION_NOT_FOUND",
        details: { id: "s" },
      });
      const handle = await store.create("s");
      await store.delete("s");
      await store.create("s");
      const before = await dump();
      expect(await rejection(store.saveMeta(handle, meta))).toMatchObject({
        code: "SESSION_DELETED",
      });
      expect(await dump()).toEqual(before);
    }),
  );
}

function listTests(fixture: InFixture): void {
  test(
    "tells first message, counts and last activity, the latest active first, in pages",
    fixture(async ({ store, clock, held }) => {
      const first = await held("a");
      clock.advance(10);
      await held("b");
      await held("c");
      clock.advance(10);
      await first.commit({
        turn: "t1",
        nodes: [
          answered("welcome"),
          said("", {
            payload: {
              parts: [
                { type: "text", text: " Look at this \n" },
                { type: "image", url: "…" },
                { type: "tool-call", text: "hidden" },
              ],
            },
          }),
          said("second"),
        ],
      });
      const { items: page, next } = await store.list({ limit: 2 });
      expect(page).toMatchObject([
        {
          id: "a",
          generation: 1,
          createdAt: 1_000,
          activeAt: 1_020,
          revision: 1,
          nodeCount: 3,
          userMessageCount: 2,
          firstUserMessage: "Look at this\n\n[Image attached]",
        },
        { id: "c", activeAt: 1_010, userMessageCount: 0, firstUserMessage: "" },
      ]);
      const rest = await store.list({ limit: 2, after: next ?? "" });
      expect(rest.items.map(({ id }) => id)).toEqual(["b"]);
      expect(rest.next).toBeUndefined();
    }),
  );

  test(
    "a clock that is set back does not make a session less active",
    fixture(async ({ store, clock, held }) => {
      const session = await held("a");
      clock.set(5_000);
      await session.commit({ turn: "t1", nodes: [said("first")] });
      clock.set(4_000);
      await held("b");
      await session.commit({ turn: "t2", nodes: [said("second")] });
      expect((await store.list()).items).toMatchObject([
        { id: "a", activeAt: 5_000, revision: 2 },
        { id: "b", activeAt: 4_000 },
      ]);
    }),
  );

  test(
    "can be limited to the children of a session, and a cursor belongs to its list",
    fixture(async ({ store }) => {
      await store.create("p");
      for (const id of ["c1", "c2", "c3"])
        await store.create(id, { relation: { kind: "child", of: "p" } });
      await store.delete("c2");
      const { items: children, next } = await store.list({
        parent: "p",
        limit: 1,
      });
      expect(children.map(({ id }) => id)).toEqual(["c3"]);
      expect(await rejection(store.list({ after: next ?? "" }))).toMatchObject({
        code: "CURSOR_INVALID",
        details: { reason: "filter" },
      });
      expect(await rejection(store.list({ after: "x!" }))).toMatchObject({
        code: "CURSOR_INVALID",
        details: { reason: "malformed" },
      });
      const rest = await store.list({ parent: "p", after: next ?? "" });
      expect(rest.items.map(({ id }) => id)).toEqual(["c1"]);
    }),
  );
}

function reopenTests(fixture: InFixture): void {
  test(
    "[A19] meta, state, queue and attachments are there",
    fixture(async (all) => {
      await fullSession(all, "s");
      const before = await all.dump();
      await all.database.close();
      const database = await all.place.open({ clock: all.clock });
      expect(await dumpOf(database)).toEqual(before);
      const { store, leases } = fixtureOf(all.place, all.clock, database);
      expect(await store.load("s")).toMatchObject({
        head: { revision: 3, config: { secret: true } },
        components: { own: { version: 1, value: "of s" } },
      });
      const waiting = await queue(database).list("s");
      expect(waiting).toMatchObject({
        items: [{ items: [{ payload: "later" }] }],
      });
      const own = await holding(store, leases, await store.create("s"));
      expect(await own.commit({ turn: "t3", nodes: [said("on")] })).toMatchObject({ revision: 4 });
      expect(sessions(database).durability).not.toBe("memory");
    }),
  );
}
