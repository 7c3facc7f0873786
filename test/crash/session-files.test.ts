import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { sessionFiles } from "../../src/sqlite.ts";
import type { SessionFile, SessionFiles } from "../../src/sqlite.ts";
import { leases } from "../../src/sessions.ts";
import { rejection } from "../conformance/backend.ts";
import { holding, said } from "../conformance/session/fixture.ts";
import { driverName, withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

async function withFiles(
  body: (files: SessionFiles, root: string) => Promise<void>,
): Promise<void> {
  await withFolder(async (folder) => {
    const root = join(folder.path, "sessions");
    await body(sessionFiles(root, { sqlite: { driver: driverName } }), root);
  });
}

/** A file with one turn in it, closed again unless it is wanted open. */
async function seeded(files: SessionFiles): Promise<SessionFile> {
  const file = await files.create("s");
  const { commit } = await holding(file.sessions, leases(file.database), file.session);
  await commit({ turn: "t1", nodes: [said("hi")] });
  return file;
}

function deleting(root: string, killed: string): Child {
  const child = new Child("session-file-deleter.ts", [root, killed]);
  onTestFinished(() => child.kill());
  return child;
}

describe("a session's file that another process deletes", () => {
  test("[AX17] is gone for a handle that has it open here: it is fenced and brings nothing back", () =>
    withFiles(async (files, root) => {
      const file = await seeded(files);
      const { commit } = await holding(file.sessions, leases(file.database), file.session);
      const child = deleting(root, "never");
      await child.ended;
      expect(child.errors).toBe("");
      expect(child.lines).toEqual(["true"]);
      expect(existsSync(file.path)).toBe(false);
      // The kernel may notice first that its log is gone; either way nothing is acknowledged.
      const fenced = /^(SESSION_DELETED|OUTCOME_UNKNOWN|WRITES_STOPPED|FLUSH_FAILED)$/;
      for (const turn of ["t2", "t3"])
        expect((await rejection(commit({ turn, nodes: [said("late")] }))).code).toMatch(fenced);
      await file.close().catch(() => undefined);
      expect(existsSync(file.path)).toBe(false);
      expect(await files.open("s")).toBeUndefined();
    }));

  test.each(["before", "after"])(
    "[A53] is gone when the process was killed after the tombstone, %s the file lost its name, once somebody opens, creates or deletes it",
    (when) =>
      withFiles(async (files, root) => {
        await (await seeded(files)).close();
        const child = deleting(root, when);
        expect(await child.ended).toBe("SIGKILL");
        expect(child.lines).toEqual([]);
        expect(existsSync(files.path("s"))).toBe(when === "before");
        expect(await files.open("s")).toBeUndefined();
        expect(await files.delete("s")).toBe(when === "before");
        const again = await files.create("s");
        expect((await again.sessions.path("s")).nodes).toEqual([]);
        await again.close();
        expect(await files.delete("s")).toBe(true);
        expect(readdirSync(root)).toEqual(["holdfast-sessions.last"]);
      }),
  );
});
