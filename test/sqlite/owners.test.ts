import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { OwnerId } from "../../src/kernel.ts";
import { rejection } from "../conformance/backend.ts";
import { Child } from "../crash/child.ts";
import { isRoot } from "../readable-by-all.ts";
import { mayBeNobody, openAsNobody } from "./nobody.ts";
import { withFolder } from "./place.ts";
import type { Folder } from "./place.ts";

const ownersOf = (folder: Folder): string => `${folder.file()}-owners`;
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe("the folder of owners' locks", () => {
  test.each([
    ["600", "700"],
    ["660", "770"],
    ["640", "750"],
  ])("of a database with mode %s has mode %s, whatever the umask", (fileMode, folderMode) =>
    withFolder(async (folder) => {
      writeFileSync(folder.file(), "");
      chmodSync(folder.file(), `0${fileMode}`);
      const database = await folder.open();
      const owners = ownersOf(folder);
      expect(modeOf(owners)).toBe(folderMode);
      expect(modeOf(join(owners, `${database.owner}.lock`))).toBe(fileMode);
    }),
  );

  test.runIf(isRoot && mayBeNobody)(
    "is shared with a group that shares the database, and judges across users",
    () =>
      withFolder(async (folder) => {
        const gid = 4_711;
        writeFileSync(folder.file(), "");
        chmodSync(folder.file(), 0o660);
        chownSync(folder.file(), 0, gid);
        chownSync(folder.path, 0, gid);
        chmodSync(folder.path, 0o770);
        const database = await folder.open();
        expect(openAsNobody(folder.file(), { gid })).toBe("opened\n");
        expect(readdirSync(ownersOf(folder))).toEqual([`${database.owner}.lock`]);
      }),
  );

  test.runIf(isRoot && mayBeNobody)("that may not be written is named in the refusal", () =>
    withFolder(async (folder) => {
      await (await folder.open()).close();
      chownSync(folder.file(), 65_534, 65_534);
      chownSync(folder.path, 65_534, 65_534);
      mkdirSync(ownersOf(folder), { mode: 0o700 });
      const said = openAsNobody(folder.file());
      expect(said).toContain("DATABASE_NOT_WRITABLE");
      expect(said).toContain(`"${ownersOf(folder)}"`);
    }),
  );

  test.each(["before the first open", "under an open database"])(
    "is not followed as a symbolic link that was put there %s",
    (when) =>
      withFolder(async (folder) => {
        const owners = ownersOf(folder);
        const elsewhere = join(folder.path, "elsewhere");
        mkdirSync(elsewhere, { mode: 0o755 });
        writeFileSync(join(elsewhere, "Own_01ARZ3NDEKTSV4RRFFQ69G5FAV.lock.new"), "");
        writeFileSync(join(elsewhere, "Own_01ARZ3NDEKTSV4RRFFQ69G5FAW.lock"), "");
        const before = readdirSync(elsewhere);
        const open = when === "under an open database" ? await folder.open() : undefined;
        rmSync(owners, { recursive: true, force: true });
        symlinkSync(elsewhere, owners);
        expect(await rejection(folder.open())).toMatchObject({
          code: "DATABASE_NOT_WRITABLE",
          details: { path: owners, reason: "LINK" },
        });
        // The one in the linked folder is held by nobody, which would be a death.
        const stranger = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAW" as OwnerId;
        if (open !== undefined) expect(await open.liveness(stranger)).toBe("unknown");
        await open?.close();
        expect(readdirSync(elsewhere)).toEqual(before);
        expect(modeOf(elsewhere)).toBe("755");
      }),
  );

  test("loses what a process left that died before its lock had a name, and nothing that is locked", () =>
    withFolder(async (folder) => {
      const owners = ownersOf(folder);
      const [abandoned, locked] = [
        join(owners, "Own_01ARZ3NDEKTSV4RRFFQ69G5FAV.lock.new"),
        join(owners, "Own_01ARZ3NDEKTSV4RRFFQ69G5FAW.lock.new"),
      ];
      mkdirSync(owners);
      writeFileSync(abandoned, "");
      const holder = new Child("lock-holder.ts", [locked, "write", 600_000]);
      await holder.reported(1);
      const database = await folder.open();
      expect(existsSync(abandoned)).toBe(false);
      expect(existsSync(locked)).toBe(true);
      holder.kill();
      await holder.ended;
      await database.close();
      await (await folder.open()).close();
      expect(existsSync(owners)).toBe(false);
    }));
});
