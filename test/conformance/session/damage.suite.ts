import { describe, expect, test } from "vitest";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { exportSession } from "../../../src/sqlite.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { hide, inFixture, pathIds, said, twoBranches } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

/** What a damaged row does to its session: it is named, and never read as absent. */
export function sessionDamageSuite(backend: Backend): void {
  const fixture: InFixture = (body) => inFixture(backend, body);
  describe("a session whose leaf is lost", () => {
    lostLeafTests(fixture);
  });
  describe("a session with a value that cannot be read", () => {
    headTests(fixture);
    messageTests(fixture);
  });
}

function lostLeafTests(fixture: InFixture): void {
  const loseLeaf = sql`DELETE FROM holdfast_session_node WHERE id = 'd'`;
  const lost = {
    code: "CORRUPT_ROW",
    details: {
      table: "holdfast_session",
      key: expect.any(Number) as unknown,
    },
  };

  test(
    "[AX13] is reported by every read that needs it, and nothing takes it for the beginning",
    fixture(async ({ database, store, held, dump }) => {
      const session = await held("s");
      const { commit } = session;
      await twoBranches(session);
      await database.write("damage", () => run(loseLeaf));
      const before = await dump();
      const refused: readonly (() => Promise<unknown>)[] = [
        () => store.path("s"),
        () => store.head("s"),
        () => store.load("s"),
        () => store.fork("s", "f"),
        () => exportSession(database, "s", "/nowhere/s.db"),
        () => commit({ turn: "t3", nodes: [said("on")] }),
        () => commit({ turn: "t3", config: 1 }),
      ];
      for (const attempt of refused) expect(await rejection(attempt())).toMatchObject(lost);
      expect(await dump()).toEqual(before);
    }),
  );

  test(
    "is read by other ways, and goes on where it is told to",
    fixture(async (all) => {
      const session = await all.held("s");
      await twoBranches(session);
      await all.database.write("damage", () => run(loseLeaf));
      expect((await all.store.graph("s")).items).toHaveLength(4);
      expect(await pathIds(all, "s", "b")).toBe("root a b");
      expect(await all.store.fork("s", "f", { node: "c" })).toMatchObject({
        existed: false,
      });
      await session.commit({
        turn: "t3",
        nodes: [said("on", { id: "e", parent: { id: "c" } })],
      });
      expect(await pathIds(all, "s")).toBe("root c e");
    }),
  );

  test(
    "is not moved along a way that leads nowhere",
    fixture(async ({ database, store, held, dump }) => {
      const { fence, ...session } = await held("s");
      await twoBranches({ fence, ...session });
      await database.write("damage", () =>
        run(sql`DELETE FROM holdfast_session_node WHERE id = 'root'`),
      );
      const before = await dump();
      expect(await rejection(store.tombstone("s", ["c", "d"], { fence }))).toMatchObject({
        code: "CORRUPT_ROW",
        details: { table: "holdfast_session_node" },
      });
      expect(await dump()).toEqual(before);
    }),
  );
}

const number = expect.any(Number) as unknown;
const frameKey = expect.stringMatching(/^\d+\/f$/) as unknown;

function headTests(fixture: InFixture): void {
  const session = { table: "holdfast_session", key: number };
  const frame = { table: "holdfast_session_frame", key: frameKey };
  const damages = {
    "a config": [sql`UPDATE holdfast_session SET config = 'garbage'`, session],
    "a frame": [sql`UPDATE holdfast_session_frame SET payload = 'garbage'`, frame],
    "a frame that is null": [sql`UPDATE holdfast_session_frame SET payload = 'null'`, frame],
    "a frame without a reason": [
      sql`UPDATE holdfast_session_frame SET payload = '{"data":1}'`,
      frame,
    ],
    "a frame without data": [
      sql`UPDATE holdfast_session_frame SET payload = '{"reason":"r"}'`,
      frame,
    ],
  } as const;
  for (const [what, [damage, details]] of Object.entries(damages))
    test(
      `is named with table and key: ${what}`,
      fixture(async ({ database, store, held }) => {
        const { commit } = await held("s");
        await commit({
          turn: "t1",
          nodes: [said("hi")],
          config: { a: 1 },
          frames: [{ id: "f", reason: "root", data: 1 }],
        });
        await database.write("damage", () => run(damage));
        for (const read of [() => store.head("s"), () => store.load("s")])
          expect(await rejection(read())).toMatchObject({
            code: "CORRUPT_ROW",
            details,
          });
        expect((await store.path("s")).nodes).toHaveLength(1);
      }),
    );
}

function messageTests(fixture: InFixture): void {
  test(
    "is no obstacle to hiding others and to forking",
    fixture(async (all) => {
      const { commit } = await all.held("s");
      const ids = ["a", "b", "c"];
      await commit({ turn: "t1", nodes: ids.map((id) => said(id, { id })) });
      for (const payload of ["garbage", null]) {
        await all.database.write("damage", () =>
          run(sql`UPDATE holdfast_session_node SET payload = ${payload} WHERE id = 'b'`),
        );
        await hide(all, "s", "a");
        const fork = `f${String(payload)}`;
        expect(await all.store.fork("s", fork)).toMatchObject({
          existed: false,
        });
      }
      const { items: listed, damaged } = await all.store.list();
      expect(listed.map((each) => each.firstUserMessage)).toEqual(["", "", ""]);
      expect(damaged).toEqual([]);
      expect(await rejection(all.store.node("s", "b"))).toMatchObject({
        code: "CORRUPT_ROW",
        details: { table: "holdfast_session_node" },
      });
    }),
  );
}
