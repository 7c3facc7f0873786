import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { hide, graphIds, holding, inFixture, pathIds, said, twoBranches } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function sessionForksSuite(backend: Backend): void {
  const fixture: InFixture = (body) => inFixture(backend, body);
  describe("a fork", () => {
    forkTests(fixture);
    forkOwnTests(fixture);
  });
}

function forkTests(fixture: InFixture): void {
  test(
    "begins with the history up to its node and shares nothing after it",
    fixture(async (all) => {
      const source = await all.held("s");
      await twoBranches(source);
      const fork = await all.store.fork("s", "f", { node: "a" });
      expect(fork).toEqual({ id: "f", generation: 1, existed: false });
      const own = await holding(all.store, all.leases, fork);
      expect(await pathIds(all, "f")).toBe("root a");
      expect(await graphIds(all, "f")).toBe("root a");
      await own.commit({ turn: "t1", nodes: [said("x", { id: "b" })] });
      await source.commit({ turn: "t9", nodes: [said("y", { id: "y" })] });
      expect(await pathIds(all, "f")).toBe("root a b");
      expect(await all.store.node("f", "b")).toMatchObject({
        payload: { text: "x" },
      });
      expect(await all.store.node("s", "b")).toMatchObject({
        payload: { text: "b" },
      });
      expect(await all.store.node("f", "c")).toBeUndefined();
      expect(await pathIds(all, "s")).toBe("root c d y");
      expect((await all.dump())["nodes"]).toHaveLength(7);
    }),
  );

  test(
    "[A18] still shows what its source removes later, and vacuum keeps it",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      await all.store.fork("s", "f", { node: "b" });
      await hide(all, "s", "root", "a", "b", "c", "d");
      await all.store.fork("f", "g", { node: "a" });
      expect(await all.store.vacuum("s")).toEqual({ removed: 2, shared: 3 });
      expect(await graphIds(all, "s")).toBe("");
      expect(await pathIds(all, "f")).toBe("root a b");
      await all.store.delete("f");
      expect(await all.store.vacuum("s")).toEqual({ removed: 1, shared: 2 });
      expect(await pathIds(all, "g")).toBe("root a");
      await all.store.delete("g");
      expect(await all.store.vacuum("s")).toEqual({ removed: 2, shared: 0 });
      expect((await all.dump())["nodes"]).toEqual([]);
    }),
  );

  test(
    "can be repeated after its source has moved on, with and without the node",
    fixture(async (all) => {
      const session = await all.held("s");
      await twoBranches(session);
      await all.store.fork("s", "f");
      await all.store.fork("s", "g", { node: "d" });
      await session.commit({ turn: "t3", nodes: [said("e", { id: "e" })] });
      await hide(all, "s", "d");
      const again = { generation: 1, existed: true };
      expect(await all.store.fork("s", "f")).toEqual({ id: "f", ...again });
      expect(await all.store.fork("s", "g", { node: "d" })).toEqual({
        id: "g",
        ...again,
      });
      expect(await rejection(all.store.fork("s", "g", { node: "b" }))).toMatchObject({
        code: "SESSION_EXISTS",
      });
      expect(await pathIds(all, "f")).toBe("root c d");
    }),
  );

  test(
    "does not keep what its source had removed before from being vacuumed",
    fixture(async (all) => {
      const session = await all.held("s");
      await twoBranches(session);
      await session.commit({ turn: "t3", nodes: [said("e", { id: "e" })] });
      await hide(all, "s", "root", "c");
      await all.store.fork("s", "f");
      await all.store.fork("f", "g");
      await hide(all, "s", "d", "e");
      expect(await all.store.vacuum("s")).toEqual({ removed: 2, shared: 2 });
      for (const fork of ["f", "g"]) {
        expect(await pathIds(all, fork)).toBe("d e");
        expect(await graphIds(all, fork)).toBe("d e");
      }
      await hide(all, "f", "e");
      await all.store.delete("g");
      expect(await all.store.vacuum("s")).toEqual({ removed: 0, shared: 2 });
      expect(await graphIds(all, "f")).toBe("d");
    }),
  );

  test(
    "finds nodes by id along the line of forks, only those on its own way, and refuses their ids",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      const f = await all.store.fork("s", "f", { node: "b" });
      const own = await holding(all.store, all.leases, f);
      await own.commit({ turn: "t1", nodes: [said("x", { id: "x" })] });
      const g = await all.store.fork("f", "g");
      const last = await holding(all.store, all.leases, g);
      for (const id of ["root", "a", "b", "x"]) {
        expect(await all.store.node("g", id)).toMatchObject({ id });
        expect(
          await rejection(last.commit({ turn: "t", nodes: [said("y"), said("z", { id })] })),
        ).toMatchObject({ code: "NODE_EXISTS", details: { id } });
      }
      expect(await all.store.node("g", "c")).toBeUndefined();
      expect(
        await last.commit({
          turn: "t",
          nodes: [said("other", { id: "c", parent: { id: "a" } })],
        }),
      ).toMatchObject({ leaf: "c" });
      expect(await pathIds(all, "g")).toBe("root a c");
      expect(await hide(all, "g", "root", "c", "d", "x")).toMatchObject({
        hidden: 3,
      });
      expect(await graphIds(all, "g")).toBe("a b");
    }),
  );

  test(
    "[A18] does not show what its source had removed before",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      await hide(all, "s", "root");
      await all.store.fork("s", "f");
      expect(await pathIds(all, "f")).toBe("c d");
      expect(await graphIds(all, "f")).toBe("c d");
      expect((await all.store.head("f")).nodeCount).toBe(2);
      expect(await rejection(all.store.fork("s", "g", { node: "root" }))).toMatchObject({
        code: "NODE_NOT_FOUND",
      });
    }),
  );

  test(
    "survives the deletion of its source and of the forks in between, and takes the shared nodes with it",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      const f = await all.store.fork("s", "f", { node: "b" });
      await (
        await holding(all.store, all.leases, f)
      ).commit({ turn: "t1", nodes: [said("x", { id: "x" })] });
      await all.store.fork("f", "g");
      expect(await all.store.delete("s")).toMatchObject({
        existed: true,
        sharedNodes: 3,
      });
      expect(await pathIds(all, "f")).toBe("root a b x");
      expect(await all.store.erase("f")).toMatchObject({ sharedNodes: 1 });
      expect(await pathIds(all, "g")).toBe("root a b x");
      expect(await graphIds(all, "g")).toBe("root a b x");
      expect(await all.store.delete("g", { rowsPerSlice: 1 })).toMatchObject({
        sharedNodes: 0,
      });
      const dump = await all.dump();
      expect(dump["nodes"]).toEqual([]);
      expect(dump["sessions"]).toMatchObject([
        { id: "s", reclaimed_at: 1_000 },
        { id: "f", reclaimed_at: 1_000 },
        { id: "g", reclaimed_at: 1_000 },
      ]);
    }),
  );
}

function forkOwnTests(fixture: InFixture): void {
  test(
    "[A18] made after its source was vacuumed begins where the source does",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      await hide(all, "s", "root");
      await all.store.vacuum("s");
      await all.store.fork("s", "f", { node: "d" });
      expect(await pathIds(all, "f")).toBe("c d");
      await all.store.delete("s");
      expect(await pathIds(all, "f")).toBe("c d");
      expect((await all.store.head("f")).nodeCount).toBe(2);
    }),
  );

  test(
    "of a fork lets the first source go, also when all in between went before",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      await all.store.fork("s", "f", { node: "b" });
      await all.store.fork("f", "g", { node: "a" });
      await all.store.delete("s");
      await all.store.delete("f");
      expect(await pathIds(all, "g")).toBe("root a");
      expect((await all.dump())["nodes"]).toHaveLength(2);
      await all.store.delete("g");
      expect((await all.dump())["nodes"]).toEqual([]);
    }),
  );

  test(
    "may be repeated, and is refused where something else has its id",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      await all.store.fork("s", "f", { node: "a" });
      const before = await all.dump();
      expect(await all.store.fork("s", "f", { node: "a" })).toEqual({
        id: "f",
        generation: 1,
        existed: true,
      });
      expect(await rejection(all.store.fork("s", "f", { node: "b" }))).toMatchObject({
        code: "SESSION_EXISTS",
        details: { id: "f" },
      });
      expect(await rejection(all.store.fork("s", "s"))).toMatchObject({
        code: "SESSION_EXISTS",
      });
      expect(await rejection(all.store.fork("s", "h", { node: "nowhere" }))).toMatchObject({
        code: "NODE_NOT_FOUND",
      });
      expect(await rejection(all.store.fork("gone", "h"))).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
      expect(await all.dump()).toEqual(before);
    }),
  );

  test(
    "may be repeated when its source is gone, and not as one of the source made anew",
    fixture(async (all) => {
      const source = await all.held("s");
      const { handle } = source;
      await twoBranches(source);
      await all.store.fork(handle, "f");
      await all.store.delete("s");
      const existed = { id: "f", generation: 1, existed: true };
      expect(await all.store.fork(handle, "f")).toEqual(existed);
      expect(await all.store.fork("s", "f", { node: "d" })).toEqual(existed);
      expect(await rejection(all.store.fork("s", "g"))).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
      await twoBranches(await all.held("s"));
      expect(await rejection(all.store.fork("s", "f"))).toMatchObject({
        code: "SESSION_EXISTS",
      });
      expect(await all.store.fork(handle, "f")).toEqual(existed);
    }),
  );

  test(
    "at the leaf takes checkpoint, frames and config along, elsewhere only when told",
    fixture(async (all) => {
      const source = await all.held("s");
      await twoBranches(source);
      await source.commit({
        turn: "t3",
        config: { model: "m" },
        components: { tools: { version: 2, value: 9 } },
        frames: [{ id: "f", reason: "root", state: { n: 1 } }],
        currentFrame: "f",
      });
      const state = {
        head: {
          revision: 0,
          config: { model: "m" },
          frames: [{ id: "f", state: { n: 1 } }],
          currentFrame: "f",
        },
        components: { tools: { version: 2, revision: 0, value: 9 } },
      };
      await all.store.fork("s", "leaf");
      expect(await all.store.load("leaf")).toMatchObject(state);
      await all.store.fork("s", "old", { node: "a" });
      expect(await all.store.load("old")).toMatchObject({
        head: { config: null, frames: [], currentFrame: null },
        components: {},
      });
      await all.store.fork("s", "told", { node: "a", withState: true });
      expect(await all.store.load("told")).toMatchObject(state);
      await all.store.delete("s");
      expect(await all.store.load("leaf")).toMatchObject(state);
    }),
  );

  test(
    "refuses an id that a shared node has, and lists its own messages",
    fixture(async (all) => {
      await twoBranches(await all.held("s"));
      const f = await all.store.fork("s", "f", {
        node: "a",
        meta: { name: "Fork" },
      });
      const own = await holding(all.store, all.leases, f);
      const before = await all.dump();
      expect(
        await rejection(own.commit({ turn: "t1", nodes: [said("x", { id: "root" })] })),
      ).toMatchObject({ code: "NODE_EXISTS", details: { id: "root" } });
      expect(await all.dump()).toEqual(before);
      await own.commit({ turn: "t1", nodes: [said("x"), said("y")] });
      const { items: sessions } = await all.store.list();
      expect(sessions.find(({ id }) => id === "f")).toMatchObject({
        meta: { name: "Fork" },
        firstUserMessage: "root",
        userMessageCount: 3,
        nodeCount: 4,
      });
    }),
  );
}
