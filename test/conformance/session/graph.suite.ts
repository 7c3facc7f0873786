import { describe, expect, test } from "vitest";
import type { SessionNode } from "../../../src/model/session/session.ts";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Page } from "../../../src/stores/list.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { hide, graphIds, inFixture, pathIds, said, twoBranches } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function sessionGraphSuite(backend: Backend): void {
  const fixture: InFixture = (body) => inFixture(backend, body);
  describe("nodes that cannot be appended", () => {
    refusalTests(fixture);
  });
  describe("a graph over damaged rows", () => {
    damageTests(fixture);
    damagedRowTests(fixture);
  });
  describe("reading a graph", () => {
    readTests(fixture);
  });
  describe("nodes that were removed", () => {
    tombstoneTests(fixture);
  });
}

function refusalTests(fixture: InFixture): void {
  test(
    "[AX13] an unknown parent, an id used twice and a cycle are refused with their own errors, and change nothing",
    fixture(async (all) => {
      const session = await all.held("s");
      await twoBranches(session);
      const before = await all.dump();
      const refused = async (nodes: object[]): Promise<object> =>
        rejection(session.commit({ turn: "t3", nodes: nodes as never, usage: [] }));
      expect(await refused([said("x"), said("y", { parent: { id: "nowhere" } })])).toMatchObject({
        code: "NODE_PARENT_UNKNOWN",
        details: { session: "s", parent: "nowhere", ordinal: 1 },
      });
      expect(await refused([said("x", { id: "a" })])).toMatchObject({
        code: "NODE_EXISTS",
        details: { session: "s", id: "a" },
      });
      expect(await refused([said("x", { id: "new" }), said("y", { id: "new" })])).toMatchObject({
        code: "NODE_EXISTS",
        details: { id: "new" },
      });
      const cycles = [
        [said("x", { parent: { ordinal: 0 } })],
        [said("x", { parent: { ordinal: 1 } }), said("y")],
        [said("x", { id: "new", parent: { id: "new" } })],
        [said("x", { id: "x", parent: { id: "y" } }), said("y", { id: "y", parent: { id: "x" } })],
      ];
      for (const cycle of cycles)
        expect(await refused(cycle)).toMatchObject({
          code: "TURN_INVALID",
          details: { part: "nodes", ordinal: 0, reason: "cycle" },
        });
      expect(await refused([said("x", { parent: { ordinal: 5 } })])).toMatchObject({
        code: "TURN_INVALID",
        details: { ordinal: 0 },
      });
      expect(await all.dump()).toEqual(before);
    }),
  );

  test(
    "a leaf that does not exist is refused",
    fixture(async (all) => {
      const session = await all.held("s");
      await twoBranches(session);
      const before = await all.dump();
      expect(
        await rejection(session.commit({ turn: "t3", leaf: { id: "nowhere" } })),
      ).toMatchObject({ code: "NODE_NOT_FOUND", details: { id: "nowhere" } });
      expect(await rejection(session.commit({ turn: "t3", leaf: { ordinal: 0 } }))).toMatchObject({
        code: "TURN_INVALID",
      });
      expect(await all.dump()).toEqual(before);
    }),
  );
}

function damageTests(fixture: InFixture): void {
  const damages = {
    "a cycle": sql`UPDATE holdfast_session_node SET parent = (SELECT key FROM holdfast_session_node WHERE id = 'd') WHERE id = 'root'`,
    "a parent that is missing": sql`DELETE FROM holdfast_session_node WHERE id = 'root'`,
    "a wrong depth": sql`UPDATE holdfast_session_node SET depth = 7 WHERE id = 'c'`,
    "a root that claims to be deep": sql`UPDATE holdfast_session_node SET depth = 1, parent = NULL WHERE id = 'c'`,
  };
  for (const [what, damage] of Object.entries(damages))
    test(
      `[AX13] a path over ${what} ends and reports the row`,
      fixture(async (all) => {
        await twoBranches(await all.held("s"));
        await all.database.write("damage", () => run(damage));
        const error = await rejection(all.store.path("s"));
        expect(error).toMatchObject({
          code: "CORRUPT_ROW",
          details: { table: "holdfast_session_node" },
        });
        expect(error.details?.["key"]).toEqual(expect.any(Number));
      }),
    );
}

function damagedRowTests(fixture: InFixture): void {
  test(
    "a node that cannot be read is named, and the others are shown",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      for (const payload of [null, "{"]) {
        await all.database.write("damage", () =>
          run(sql`UPDATE holdfast_session_node SET payload = ${payload} WHERE id = 'c'`),
        );
        const { items: nodes, damaged } = await all.store.graph("s");
        expect(nodes.map(({ id }) => id)).toEqual(["root", "a", "b", "d"]);
        expect(damaged).toEqual([{ table: "holdfast_session_node", key: "c" }]);
        expect(await rejection(all.store.path("s"))).toMatchObject({
          code: "CORRUPT_ROW",
        });
        expect(await pathIds(all, "s", "b")).toBe("root a b");
      }
    }),
  );

  test(
    "a session whose row cannot be read is named, and the others are listed",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      await all.store.create("other");
      await all.database.write("damage", () =>
        run(sql`UPDATE holdfast_session SET first_user_message = '{' WHERE id = 's'`),
      );
      const { items: sessions, damaged } = await all.store.list();
      expect(sessions.map(({ id }) => id)).toEqual(["other"]);
      expect(damaged).toEqual([{ table: "holdfast_session", key: "s" }]);
    }),
  );
}

function readTests(fixture: InFixture): void {
  test(
    "a page holds as many nodes as their bytes allow, and the rest comes with the next",
    fixture(async (all) => {
      const { commit } = await all.held("s");
      const text = "x".repeat(400_000);
      const ids = ["a", "b", "c", "d", "e"];
      await commit({
        turn: "t",
        nodes: ids.map((id) => said(text, { id })),
      });
      const pages: string[] = [];
      for (let after: string | undefined; ;) {
        const page: Page<SessionNode> = await all.store.graph("s", {
          ...(after !== undefined && { after }),
        });
        pages.push(page.items.map(({ id }) => id).join(""));
        after = page.next;
        if (after === undefined) break;
      }
      expect(pages).toEqual(["ab", "cd", "e"]);
    }),
  );

  test(
    "[A9] all branches come in the order of insertion, in pages",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      expect(await graphIds(all, "s")).toBe("root a b c d");
      const first = await all.store.graph("s", { limit: 2 });
      expect(first.items.map(({ id }) => id)).toEqual(["root", "a"]);
      const second = await all.store.graph("s", {
        limit: 3,
        after: first.next ?? "",
      });
      expect(second.items).toMatchObject([
        { id: "b", parent: "a", turn: "t1", role: "user" },
        { id: "c", parent: "root", turn: "t2", role: "assistant" },
        { id: "d", parent: "c", at: 1_000, payload: { text: "d" } },
      ]);
      expect(second.next).toBeUndefined();
      await all.held("other");
      expect(await rejection(all.store.graph("other", { after: first.next ?? "" }))).toMatchObject({
        code: "CURSOR_INVALID",
        details: { reason: "filter" },
      });
      expect(await rejection(all.store.graph("s", { after: "?" }))).toMatchObject({
        code: "CURSOR_INVALID",
      });
      await all.store.delete("s");
      await twoBranches(await all.held("s"));
      expect(await rejection(all.store.graph("s", { after: first.next ?? "" }))).toMatchObject({
        code: "CURSOR_INVALID",
        details: { reason: "filter" },
      });
    }),
  );

  test(
    "[A10] the active path leads to the leaf, and to any other node that is named",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      expect(await all.store.path("s")).toMatchObject({
        leaf: "d",
        hasMore: false,
        nodes: [{ id: "root", parent: null }, { id: "c" }, { id: "d" }],
      });
      expect(await all.store.path("s", { leaf: "b" })).toMatchObject({
        leaf: "b",
        nodes: [{ id: "root" }, { id: "a" }, { id: "b" }],
      });
      expect(await all.store.path("s", { leaf: "nowhere" })).toEqual({
        leaf: "nowhere",
        hasMore: false,
        nodes: [],
      });
      await all.store.create("empty");
      expect(await all.store.path("empty")).toEqual({
        leaf: null,
        hasMore: false,
        nodes: [],
      });
    }),
  );

  test(
    "[A10] of a long path the newest nodes are read first",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      const newest = await all.store.path("s", { limit: 2 });
      expect(newest).toMatchObject({
        hasMore: true,
        nodes: [{ id: "c", parent: "root" }, { id: "d" }],
      });
      expect(await all.store.path("s", { limit: 3 })).toMatchObject({
        hasMore: false,
      });
      expect(await pathIds(all, "s", "root")).toBe("root");
    }),
  );

  test(
    "moving the leaf goes on from there, and leaves the other branch as it is",
    fixture(async (all) => {
      const session = await all.held("s");
      await twoBranches(session);
      expect(await session.commit({ turn: "t3", leaf: { id: "a" } })).toMatchObject({
        revision: 3,
        leaf: "a",
        nodes: [],
      });
      expect(await pathIds(all, "s")).toBe("root a");
      await session.commit({ turn: "t4", nodes: [said("e", { id: "e" })] });
      expect(await pathIds(all, "s")).toBe("root a e");
      await session.commit({
        turn: "t5",
        nodes: [said("f", { id: "f" }), said("g", { id: "g", parent: null })],
        leaf: { ordinal: 0 },
      });
      expect(await pathIds(all, "s")).toBe("root a e f");
      expect(await pathIds(all, "s", "g")).toBe("g");
      await session.commit({ turn: "t6", leaf: null });
      expect(await pathIds(all, "s")).toBe("");
      expect(await graphIds(all, "s")).toBe("root a b c d e f g");
    }),
  );

  test(
    "load shows head, path and checkpoint of one moment, and node loads one",
    fixture(async (all) => {
      const session = await all.held("s");
      await twoBranches(session);
      await session.commit({
        turn: "t3",
        components: { tools: { version: 1, value: 5 } },
      });
      expect(await all.store.load("s", { limit: 1 })).toMatchObject({
        head: { revision: 3, leaf: "d", nodeCount: 5 },
        path: { hasMore: true, nodes: [{ id: "d" }] },
        components: { tools: { value: 5, revision: 3 } },
      });
      expect(await all.store.node("s", "a")).toEqual({
        id: "a",
        parent: "root",
        turn: "t1",
        at: 1_000,
        kind: "message",
        role: "assistant",
        frame: null,
        causedBy: null,
        payload: { text: "a" },
      });
      expect(await all.store.node("s", "nowhere")).toBeUndefined();
    }),
  );
}

function tombstoneTests(fixture: InFixture): void {
  test(
    "[A18] vanish at once, and vacuum reports only the rows it removed",
    fixture(async (all) => {
      const session = await all.held("s");
      await twoBranches(session);
      expect(await hide(all, "s", "b", "nowhere", "b")).toMatchObject({
        hidden: 1,
      });
      expect(await hide(all, "s", "b")).toMatchObject({ hidden: 0 });
      expect(await hide(all, "s")).toMatchObject({ hidden: 0 });
      expect(await all.store.node("s", "b")).toBeUndefined();
      expect(await graphIds(all, "s")).toBe("root a c d");
      expect((await all.store.head("s")).nodeCount).toBe(4);
      expect(
        await rejection(
          session.commit({
            turn: "t3",
            nodes: [said("x", { parent: { id: "b" } })],
          }),
        ),
      ).toMatchObject({ code: "NODE_PARENT_UNKNOWN" });
      expect(await all.store.vacuum("s")).toEqual({ removed: 1, shared: 0 });
      expect(await all.store.vacuum("s")).toEqual({ removed: 0, shared: 0 });
      expect((await all.dump())["marks"]).toEqual([]);
      expect(await pathIds(all, "s")).toBe("root c d");
    }),
  );

  test(
    "[A18] an ancestor that was removed ends a path and is no corruption, before and after vacuum",
    fixture(async (all) => {
      const session = await all.held("s");
      await twoBranches(session);
      await hide(all, "s", "root");
      expect(await pathIds(all, "s")).toBe("c d");
      expect(await all.store.vacuum("s")).toEqual({ removed: 1, shared: 0 });
      expect(await pathIds(all, "s")).toBe("c d");
      expect(await graphIds(all, "s")).toBe("a b c d");
      await hide(all, "s", "a", "b", "c", "d");
      expect(await all.store.path("s")).toEqual({
        leaf: null,
        hasMore: false,
        nodes: [],
      });
      expect(await all.store.vacuum("s", { rowsPerSlice: 1 })).toEqual({
        removed: 4,
        shared: 0,
      });
      await all.store.vacuum("s");
      const dump = await all.dump();
      expect(dump["nodes"]).toEqual([]);
      expect(dump["marks"]).toEqual([]);
      await session.commit({ turn: "t3", nodes: [said("anew", { id: "n" })] });
      expect(await pathIds(all, "s")).toBe("n");
    }),
  );

  test(
    "a leaf that is removed leaves the conversation at the nearest node above it that is shown",
    fixture(async (all) => {
      const session = await all.held("s");
      await twoBranches(session);
      await session.commit({ turn: "t3", nodes: [said("e", { id: "e" })] });
      await hide(all, "s", "d");
      expect(await pathIds(all, "s")).toBe("e");
      await hide(all, "s", "e");
      expect(await all.store.path("s")).toMatchObject({
        leaf: "c",
        nodes: [{ id: "root" }, { id: "c" }],
      });
      expect((await all.store.head("s")).leaf).toBe("c");
      expect(await all.store.path("s", { leaf: "e" })).toEqual({
        leaf: "e",
        hasMore: false,
        nodes: [],
      });
      await all.store.vacuum("s");
      await session.commit({ turn: "t4", nodes: [said("f", { id: "f" })] });
      expect(await pathIds(all, "s")).toBe("root c f");
    }),
  );

  test(
    "what a list shows of messages follows",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      const shown = async (): Promise<object[]> =>
        (await all.store.list()).items.map((session) => ({
          first: session.firstUserMessage,
          count: session.userMessageCount,
        }));
      expect(await shown()).toEqual([{ first: "root", count: 3 }]);
      await hide(all, "s", "root");
      expect(await shown()).toEqual([{ first: "b", count: 2 }]);
      await hide(all, "s", "b", "d");
      expect(await shown()).toEqual([{ first: "", count: 0 }]);
    }),
  );
}
