import { existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { rows, sql } from "../../src/kernel.ts";
import { leases } from "../../src/sessions.ts";
import { sessionFiles } from "../../src/sqlite.ts";
import type { SessionFiles } from "../../src/sqlite.ts";
import { rejection } from "../conformance/backend.ts";
import { holding, said } from "../conformance/session/fixture.ts";
import { isDeep } from "../depth.ts";
import { driverName, withFolder } from "./place.ts";
import type { Folder } from "./place.ts";

const mark = "holdfast-sessions.last";

/** What is in the folder besides its mark. */
function left(folder: Folder): readonly string[] {
  return readdirSync(join(folder.path, "sessions")).filter((name) => name !== mark);
}

function filesIn(folder: Folder): SessionFiles {
  return sessionFiles(join(folder.path, "sessions"), {
    sqlite: { driver: driverName },
  });
}

describe("sessions in files of their own", () => {
  test("[A52] a file is directly in the folder, and its name is the same every time", () =>
    withFolder(async (folder) => {
      const files = filesIn(folder);
      const path = files.path("../team/chat 7");
      expect(path).toBe(join(folder.path, "sessions", "team_chat_7-6b5f3a47c4b7f9ea.db"));
      const made = await files.create("../team/chat 7");
      expect(made.path).toBe(path);
      await made.close();
      expect(left(folder)).toEqual(["team_chat_7-6b5f3a47c4b7f9ea.db"]);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(() => files.path("")).toThrow(expect.objectContaining({ code: "ID_MALFORMED" }));
    }));

  test("[A53] create seeds and preserves the meta, open finds only what exists, delete takes the file and may be repeated", () =>
    withFolder(async (folder) => {
      const files = filesIn(folder);
      expect(await files.open("s")).toBeUndefined();
      expect(existsSync(join(folder.path, "sessions"))).toBe(false);
      const made = await files.create("s", { model: "one" });
      await made.sessions.saveMeta(made.session, {
        name: "Mine",
        model: "two",
        cwd: null,
        relation: { kind: "root" },
      });
      await made.close();
      const again = await files.create("s", { model: "three" });
      expect(await again.sessions.meta(again.session)).toMatchObject({
        name: "Mine",
        model: "two",
      });
      await again.close();
      const opened = await files.open("s");
      expect(opened?.session).toEqual({ id: "s", generation: 1 });
      await opened?.close();
      expect(await files.delete("s")).toBe(true);
      expect(left(folder)).toEqual([]);
      expect(await files.delete("s")).toBe(false);
      expect(await files.open("s")).toBeUndefined();
      const fresh = await files.create("s");
      expect(await fresh.sessions.meta(fresh.session)).toMatchObject({
        name: "s",
        model: null,
      });
      await fresh.close();
    }));

  test("[A53] a handle and a lease of a deleted file count in no later one, whatever the clock says", () =>
    withFolder(async (folder) => {
      const clock = manualClock(5_000);
      const files = sessionFiles(join(folder.path, "sessions"), {
        sqlite: { driver: driverName, clock },
      });
      const first = await files.create("s");
      expect(first.session).toEqual({ id: "s", generation: 1 });
      const claimant = { owner: "a", incarnation: "1", process: null };
      for (const fence of [1, 2, 3]) {
        const outcome = await leases(first.database).acquire("s", claimant);
        expect(outcome).toMatchObject({ lease: { fence } });
        if (outcome.kind === "acquired") await leases(first.database).release(outcome.lease);
      }
      await first.close();
      await files.delete("s");
      clock.set(1_000);
      const second = await files.create("s");
      expect(second.session).toEqual({ id: "s", generation: 4 });
      expect(await leases(second.database).acquire("s", claimant)).toMatchObject({
        lease: { fence: 4 },
      });
      const meta = await second.sessions.meta("s");
      expect(await rejection(second.sessions.saveMeta(first.session, meta))).toMatchObject({
        code: "SESSION_DELETED",
      });
      await second.close();
      // Removed by hand: no deletion could tell of it.
      rmSync(second.path);
      const third = await files.create("s");
      expect(third.session.generation).toBe(5);
      expect(await third.sessions.list()).toMatchObject({
        items: [{ id: "s", generation: 5 }],
      });
      await third.close();
    }));

  test("[A53] a folder that has lost count makes no sessions", () =>
    withFolder(async (folder) => {
      const files = filesIn(folder);
      await (await files.create("s")).close();
      await files.delete("s");
      for (const damage of ["", "1e3", "99999999999999999", "-1"]) {
        writeFileSync(join(folder.path, "sessions", mark), damage);
        expect(await rejection(files.create("s"))).toMatchObject({
          code: "SESSION_FILE_INVALID",
        });
      }
    }));

  test("[A53] [AX17] a handle that is open while the file is deleted is fenced", () =>
    withFolder(async (folder) => {
      const files = filesIn(folder);
      const open = await files.create("s");
      const own = await holding(open.sessions, leases(open.database), open.session);
      await own.commit({ turn: "t1", nodes: [said("hi")] });
      expect(await files.delete("s")).toBe(true);
      for (const attempt of [
        () => own.commit({ turn: "t2", nodes: [said("ghost")] }),
        () => open.sessions.load(open.session),
      ])
        // The kernel notices first that its log is gone; either way nothing is acknowledged.
        expect((await rejection(attempt())).code).toMatch(
          /^(SESSION_DELETED|OUTCOME_UNKNOWN|WRITES_STOPPED|FLUSH_FAILED)$/,
        );
      await open.close();
      expect(await files.open("s")).toBeUndefined();
      expect(left(folder)).toEqual([]);
    }));

  test("[A53] [AX17] what is committed to a session that was created while its file was being deleted stays", () =>
    withFolder(async (folder) => {
      const files = filesIn(folder);
      for (let round = 0; round < (isDeep ? 20 : 2); round += 1) {
        await (await files.create("s")).close();
        const others = Array.from({ length: 4 }, async (_, index) => {
          for (let step = 0; step < index * 3; step += 1)
            await new Promise((resolve) => setImmediate(resolve));
          // One that was open before the deletion may lose its file under its hands.
          const made = await filesIn(folder)
            .create("s")
            .catch(() => undefined);
          if (made === undefined) return undefined;
          try {
            const own = await holding(made.sessions, leases(made.database), made.session);
            await own.commit({ turn: `t${index}`, nodes: [said("hi")] });
            return undefined;
          } catch {
            return undefined;
          } finally {
            await made.close();
          }
        });
        expect(await files.delete("s")).toBe(true);
        await Promise.all(others);
        const last = await files.open("s");
        const made = await last?.database.read("generations", () =>
          rows(sql`SELECT key FROM holdfast_session WHERE revision > 0`),
        );
        // A second one in this file would have been created after a tombstone in it.
        expect(made?.length ?? 0).toBeLessThan(2);
        await last?.close();
        await files.delete("s");
        expect(left(folder)).toEqual([]);
      }
    }));

  test("[A53] a session that an open handle creates in a file that is going is deleted before the file goes", () =>
    withFolder(async (folder) => {
      const files = filesIn(folder);
      const open = await files.create("s");
      const deleting = files.delete("s");
      let isDeleted = false;
      void deleting.then(() => (isDeleted = true));
      let again: { readonly generation: number } | undefined;
      while (!isDeleted && again === undefined) {
        await new Promise((resolve) => setImmediate(resolve));
        again = await open.sessions
          .open("s")
          .then((found) => (found ? undefined : open.sessions.create("s")))
          .catch(() => ({ generation: 0 }));
      }
      expect(await deleting).toBe(true);
      // Fenced by a tombstone of its own, or it never came to be.
      expect((await rejection(open.sessions.load(open.session))).code).toMatch(
        /^(SESSION_DELETED|OUTCOME_UNKNOWN|WRITES_STOPPED|FLUSH_FAILED)$/,
      );
      await open.close();
      expect(left(folder)).toEqual([]);
      expect(await files.open("s")).toBeUndefined();
    }));

  test("[A53] what a deletion left when its process died is cleared away, and opening makes no file", () =>
    withFolder(async (folder) => {
      const files = filesIn(folder);
      await (await files.create("s")).close();
      const path = files.path("s");
      renameSync(path, `${path}-going`);
      writeFileSync(`${path}-wal`, "left");
      writeFileSync(`${path}-shm`, "left");
      expect(await files.open("s")).toBeUndefined();
      expect(existsSync(path)).toBe(false);
      const made = await files.create("s", { model: "new" });
      expect(await made.sessions.meta(made.session)).toMatchObject({
        model: "new",
      });
      await made.close();
      expect(left(folder)).toEqual([basename(path)]);
    }));
});
