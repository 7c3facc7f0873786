import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { exportSession, importSession, openSqlite } from "../../../src/sqlite.ts";
import { attachments } from "../../../src/stores/attachment/attachments.ts";
import { sessions } from "../../../src/stores/session/sessions.ts";
import { driverName } from "../../sqlite/place.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { hide, answered, holding, inFixture, said } from "./fixture.ts";
import type { HeldSession, SessionFixture } from "./fixture.ts";

const sqlite = { driver: driverName } as const;

/** Export and import of one session as a file, from and to every database. */
export function sessionTransferSuite(backend: Backend): void {
  const fixture =
    (body: (fixture: SessionFixture, folder: string) => Promise<void>) => async () => {
      const folder = mkdtempSync(join(tmpdir(), "holdfast-export-"));
      try {
        await inFixture(backend, (all) => body(all, folder))();
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    };

  describe("a session that is exported", () => {
    refusalTests(fixture);
    exportTests(fixture);
  });
}

type InFixture = (
  body: (fixture: SessionFixture, folder: string) => Promise<void>,
) => () => Promise<void>;

const usage = {
  source: "chat",
  model: "m",
  inputTokens: 5,
  outputTokens: 7,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};

const turn = {
  turn: "t1",
  nodes: [
    said("root", { id: "root" }),
    answered("a", { id: "a" }),
    said("b", { id: "b" }),
    said("c", { id: "c", parent: { id: "root" } }),
  ],
  leaf: { id: "b" },
  config: { model: "m" },
  components: { tools: { version: 2, value: Uint8Array.from([1, 2, 3]) } },
  frames: [{ id: "f", reason: "custom", state: { big: "x".repeat(9_000) } }],
  currentFrame: "f",
  usage: [usage],
};

async function talked(
  { database, held }: SessionFixture,
  id: string,
): Promise<HeldSession & { readonly file: string }> {
  const session = await held(id);
  const files = attachments(database);
  const bytes = new TextEncoder().encode("picture");
  const file = await files.put(session.handle, bytes, {
    mediaType: "image/png",
    label: "a picture",
  });
  await files.put(session.handle, Uint8Array.from([9]), {
    mediaType: "text/plain",
  });
  await session.commit({ ...turn, attachments: [file.id] });
  return { ...session, file: file.id };
}

function refusalTests(fixture: InFixture): void {
  test(
    "needs a session, and a name that is free; nothing is left otherwise",
    fixture(async (all, folder) => {
      await talked(all, "s");
      const to = join(folder, "s.db");
      expect(await rejection(exportSession(all.database, "gone", to, { sqlite }))).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
      writeFileSync(to, "mine");
      expect(await rejection(exportSession(all.database, "s", to, { sqlite }))).toMatchObject({
        code: "TARGET_EXISTS",
      });
      expect(readdirSync(folder)).toEqual(["s.db"]);
    }),
  );

  test(
    "is not imported over a living one, nor from a file that holds none or several",
    fixture(async (all, folder) => {
      await talked(all, "s");
      const { path } = await exportSession(all.database, "s", join(folder, "s.db"), { sqlite });
      const before = await all.dump();
      expect(await rejection(importSession(all.database, path, { sqlite }))).toMatchObject({
        code: "SESSION_EXISTS",
        details: { id: "s" },
      });
      const several = await openSqlite(join(folder, "several.db"), sqlite);
      await several.close();
      const open = (): Promise<unknown> =>
        importSession(all.database, join(folder, "several.db"), {
          sqlite,
          id: "x",
        });
      expect(await rejection(open())).toMatchObject({
        code: "SESSION_FILE_INVALID",
      });
      const again = await openSqlite(join(folder, "several.db"), sqlite);
      await sessions(again).create("a");
      await sessions(again).create("b");
      await again.close();
      expect(await rejection(open())).toMatchObject({
        code: "SESSION_FILE_INVALID",
      });
      expect(
        await rejection(importSession(all.database, join(folder, "none.db"), { sqlite })),
      ).toMatchObject({ code: "DATABASE_NOT_FOUND" });
      expect(await all.dump()).toEqual(before);
    }),
  );
}

function exportTests(fixture: InFixture): void {
  test(
    "[A52] is one file, under a name made of its id unless told",
    fixture(async (all, folder) => {
      await talked(all, "team/chat");
      const { path } = await exportSession(all.database, "team/chat", `${folder}/`, { sqlite });
      expect(path).toBe(join(folder, "team_chat-6cda14bf20008afb.db"));
      expect(readdirSync(folder)).toEqual(["team_chat-6cda14bf20008afb.db"]);
    }),
  );

  test(
    "comes back with all it had, and its turns can still be repeated",
    fixture(async (all, folder) => {
      const { handle, file } = await talked(all, "s");
      await all.store.saveMeta(handle, {
        name: "Mine",
        model: "m",
        cwd: "/w",
        relation: { kind: "root" },
      });
      const whole = await all.store.load(handle);
      const graph = await all.store.graph(handle);
      const { path } = await exportSession(all.database, handle, folder, {
        sqlite,
      });
      await all.store.erase(handle);
      all.clock.advance(100);
      const back = await importSession(all.database, path, { sqlite });
      expect(back).toEqual({ id: "s", generation: 2, existed: false });
      expect(await all.store.load(back)).toEqual({
        ...whole,
        head: { ...whole.head, generation: 2 },
      });
      expect(await all.store.graph(back)).toEqual(graph);
      expect(await all.store.usage(back)).toEqual([usage]);
      expect(await all.store.meta(back)).toMatchObject({
        name: "Mine",
        createdAt: 1_000,
      });
      expect((await all.store.list()).items).toMatchObject([
        {
          id: "s",
          activeAt: 1_000,
          userMessageCount: 3,
          firstUserMessage: "root",
        },
      ]);
      const files = attachments(all.database);
      const { content, attachment } = await files.get(back, file);
      expect(new TextDecoder().decode(content)).toBe("picture");
      expect(attachment).toMatchObject({
        mediaType: "image/png",
        label: "a picture",
      });
      expect((await files.list(back)).items).toHaveLength(1);
      expect(await all.store.commit(back, { ...turn, attachments: [file] })).toMatchObject({
        kind: "replayed",
        revision: 1,
      });
      const own = await holding(all.store, all.leases, back);
      await own.commit({ turn: "t2", nodes: [said("on", { id: "on" })] });
      const { nodes } = await all.store.path(back);
      expect(nodes.map(({ id }) => id)).toEqual(["root", "a", "b", "on"]);
    }),
  );

  test(
    "of a fork holds the shared history, without what was removed, and may get another id",
    fixture(async (all, folder) => {
      await talked(all, "s");
      const fork = await all.store.fork("s", "f", { node: "b" });
      const own = await holding(all.store, all.leases, fork);
      await own.commit({ turn: "t2", nodes: [said("x", { id: "x" })] });
      await hide(all, "f", "a");
      const { path } = await exportSession(all.database, "f", folder, {
        sqlite,
      });
      await all.store.delete("s");
      await all.store.delete("f");
      const back = await importSession(all.database, path, {
        sqlite,
        id: "g",
      });
      expect(back).toEqual({ id: "g", generation: 1, existed: false });
      const graph = await all.store.graph("g");
      expect(graph.items.map(({ id }) => id)).toEqual(["root", "b", "x"]);
      const { nodes } = await all.store.path("g");
      expect(nodes.map(({ id }) => id)).toEqual(["b", "x"]);
    }),
  );

  test(
    "in pages, while it goes on being used, is as it was at one moment",
    fixture(async (all, folder) => {
      const { commit } = await all.held("s");
      for (let index = 0; index < 3; index += 1)
        await commit({
          turn: `t${index}`,
          nodes: Array.from({ length: 400 }, (_, at) => said(`${index}/${at}`)),
          components: { n: { version: 1, value: index } },
          usage: [usage],
        });
      const seen: number[] = [];
      let later: Promise<unknown> | undefined;
      const { path } = await exportSession(all.database, "s", folder, {
        sqlite,
        onProgress({ nodes, of }) {
          seen.push(nodes);
          expect(of).toBe(1_200);
          later ??= commit({
            turn: "later",
            nodes: [said("later")],
            components: { n: { version: 1, value: "later" } },
            usage: [usage],
          });
        },
      });
      await later;
      expect(seen).toEqual([500, 1_000, 1_200]);
      const back = await importSession(all.database, path, {
        sqlite,
        id: "copy",
      });
      expect(await all.store.load(back, { limit: 1 })).toMatchObject({
        head: { revision: 3, nodeCount: 1_200 },
        path: { nodes: [{ payload: { text: "2/399" } }] },
        components: { n: { value: 2, revision: 3 } },
      });
      expect(await all.store.usage(back)).toEqual([
        { ...usage, inputTokens: 15, outputTokens: 21 },
      ]);
      expect(await rejection(all.store.commit(back, { turn: "later" }))).toMatchObject({
        code: "LEASE_LOST",
      });
    }),
  );

  test(
    "is given up when nodes are removed meanwhile, and leaves nothing",
    fixture(async (all, folder) => {
      const { commit } = await all.held("s");
      // So many pages that the removal is done before the last one is read.
      for (const name of ["a", "b", "c", "d"])
        await commit({
          turn: name,
          nodes: Array.from({ length: 1_000 }, (_, at) => said("x", { id: `${name}${at}` })),
        });
      let removed: Promise<unknown> | undefined;
      const error = await rejection(
        exportSession(all.database, "s", folder, {
          sqlite,
          onProgress() {
            removed ??= hide(all, "s", "d999");
          },
        }),
      );
      await removed;
      expect(error).toMatchObject({
        code: "TRANSACTION_CONFLICT",
        retryable: true,
      });
      expect(readdirSync(folder)).toEqual([]);
    }),
  );
}
