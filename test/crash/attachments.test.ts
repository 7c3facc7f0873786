import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { attachmentFiles } from "../../src/sqlite.ts";
import { attachments } from "../../src/sessions.ts";
import type { Page } from "../../src/kernel.ts";
import type { Attachment, Attachments } from "../../src/sessions.ts";
import { createSession } from "../conformance/blob/owners.ts";
import { filesIn } from "../conformance/attachment/byte-stores.ts";
import { rejection } from "../conformance/backend.ts";
import { isDeep, seed, seededRandom } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { mayMount, underSmallDisk } from "./small-disk.ts";

async function idsOf(store: Attachments): Promise<readonly string[]> {
  const ids: string[] = [];
  let after: string | undefined;
  do {
    const { items, next }: Page<Attachment> = await store.list(
      { id: "s" },
      { limit: 1_000, ...(after !== undefined && { after }) },
    );
    ids.push(...items.map(({ id }) => id));
    after = next;
  } while (after !== undefined);
  return ids;
}

describe("attachments in files, killed with SIGKILL under load", () => {
  const rounds = isDeep ? 40 : 3;

  test(`what was committed is there, and a sweep leaves nothing else, over ${rounds} rounds`, () =>
    withFolder(async (folder) => {
      const random = seededRandom(seed);
      const setup = await folder.open();
      await createSession(setup, "s");
      await setup.close();
      const place = folder.file("attachments");
      const promised = new Set<string>();
      for (let round = 0; round < rounds; round += 1) {
        const child = new Child("attachment-writer.ts", [folder.file(), place, round]);
        await child.reported(2 + Math.floor(random() * 60));
        child.kill();
        expect(await child.ended).toBe("SIGKILL");
        expect(child.errors).toBe("");
        for (const id of child.lines.slice(1)) promised.add(id);
        const database = await folder.open();
        const store = attachments(database, { bytes: attachmentFiles(place) });
        const { failed } = await store.sweep({ olderThan: 0 });
        expect(failed).toEqual([]);
        expect((await store.listUncommitted({ id: "s" }, 8.64e15)).items).toEqual([]);
        const ids = await idsOf(store);
        expect([...promised].filter((id) => !ids.includes(id))).toEqual([]);
        for (const id of ids) await store.get({ id: "s" }, id);
        expect(filesIn(place).map((name) => name.slice("sha256/ab/".length, -25))).toEqual(ids);
        await database.close();
      }
      expect(promised.size).toBeGreaterThan(rounds);
    }));
});

describe("attachments in files that cannot be written", () => {
  test("are refused with the reason, leave nothing, and go there once they can", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await createSession(database, "s");
      const inTheWay = folder.file("in-the-way");
      writeFileSync(inTheWay, "");
      const put = async (place: string): Promise<{ readonly id: string }> =>
        attachments(database, { bytes: attachmentFiles(place) }).put(
          { id: "s" },
          new Uint8Array([1]),
          { mediaType: "text/plain" },
        );
      const error = await rejection(put(join(inTheWay, "attachments")));
      expect(error).toMatchObject({
        code: "ATTACHMENT_FAILED",
        retryable: true,
      });
      expect(error.message).toContain("ENOTDIR");
      const good = folder.file("good");
      await put(good);
      expect(filesIn(good)).toHaveLength(1);
      for (const bad of ["", "a\0b", undefined as never])
        expect(() => attachmentFiles(bad)).toThrow("the path of a folder");
    }));

  test.runIf(mayMount())(
    "because the disk is full are refused as retryable, leave nothing half, and go on after there is room",
    () =>
      withFolder(async (folder) => {
        const small = folder.file("small");
        const child = new Child(
          "full-attachment-disk.ts",
          [folder.file(), small],
          underSmallDisk(small),
        );
        expect(await child.ended).toBe(0);
        expect(child.errors).toBe("");
        expect(JSON.parse(child.lines.at(-1) ?? "{}")).toEqual({
          code: "DISK_FULL",
          retryable: true,
          nothingHalf: true,
          sizeAfter: 100_000,
        });
      }),
  );
});
