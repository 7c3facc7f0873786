import { mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { attachmentFiles } from "../../../src/sqlite.ts";
import { attachments, sessions } from "../../../src/sessions.ts";
import type { Database } from "../../../src/kernel.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { bytesOf, createSession, hashes, textOf } from "../blob/owners.ts";
import { filesIn } from "./byte-stores.ts";

const text = { mediaType: "text/plain" };

/** Attachments of one database in more than one folder, and in one that is not there. */
export function attachmentFoldersSuite(backend: Backend): void {
  const inFolder = (body: (database: Database, folder: string) => Promise<void>) => () =>
    withPlace(backend, async (place) => {
      const folder = mkdtempSync(join(tmpdir(), "holdfast-folders-"));
      try {
        const database = await place.open();
        await createSession(database, "s");
        await createSession(database, "s2");
        await body(database, folder);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });

  describe("folders of attachments", () => {
    test(
      "[A45] two of one database leave each other's attachments alone",
      inFolder(async (database, folder) => {
        const [a, b] = ["a", "b"].map((name) =>
          attachments(database, { bytes: attachmentFiles(join(folder, name)) }),
        );
        if (a === undefined || b === undefined) throw new Error("Two.");
        await a.put("s", bytesOf("abc"), text);
        await a.commit("s", [hashes.abc]);
        await b.put("s2", bytesOf("abc"), text);
        await b.commit("s2", [hashes.abc]);
        for (const store of [a, b]) await store.sweep({ olderThan: 0 });
        expect(textOf((await a.get("s", hashes.abc)).content)).toBe("abc");
        expect(textOf((await b.get("s2", hashes.abc)).content)).toBe("abc");
        for (const name of ["a", "b"]) expect(filesIn(join(folder, name))).toHaveLength(1);
      }),
    );

    test(
      "erasing a session that does not know its folder tells of its own files that are still there, also when repeated",
      inFolder(async (database, folder) => {
        const files = attachments(database, {
          bytes: attachmentFiles(join(folder, "a")),
        });
        for (const session of ["s", "s2"])
          for (const content of ["common", `of ${session}`]) {
            const { id } = await files.put(session, bytesOf(content), text);
            await files.commit(session, [id]);
          }
        const store = sessions(database);
        expect(await store.erase("s")).toMatchObject({ bytesPending: 1 });
        expect(await store.erase("s")).toMatchObject({ bytesPending: 1 });
        // What both had went with the last of them.
        expect(await store.erase("s2")).toMatchObject({ bytesPending: 2 });
        expect(await store.erase("s", { attachments: files })).toMatchObject({
          bytesPending: 0,
        });
        expect(filesIn(join(folder, "a"))).toEqual([]);
      }),
    );

    test(
      "[A45] one that lacks its id, or was replaced, is refused and loses nothing",
      inFolder(async (database, folder) => {
        const place = join(folder, "a");
        const marker = join(place, "holdfast-attachments.id");
        const bytes = attachmentFiles(place);
        expect(bytes.kind).toBe(`files:${readFileSync(marker, "utf8")}`);
        expect(attachmentFiles(place).kind).toBe(bytes.kind);
        const store = attachments(database, { bytes });
        await store.put("s", bytesOf("abc"), text);
        renameSync(place, join(folder, "unmounted"));
        const refused = { code: "ATTACHMENT_FOLDER_WRONG", retryable: false };
        expect(await rejection(store.get("s", hashes.abc))).toMatchObject(refused);
        expect(await rejection(store.put("s", bytesOf("abc"), text))).toMatchObject(refused);
        expect(await store.forget("s", hashes.abc)).toBe(true);
        expect(await store.sweep({ olderThan: 0 })).toMatchObject({
          removed: 0,
          failed: [{ reason: "ATTACHMENT_FOLDER_WRONG" }],
        });
        renameSync(join(folder, "unmounted"), place);
        expect(filesIn(place)).toHaveLength(1);
        rmSync(marker);
        expect(() => attachmentFiles(place)).toThrow(expect.objectContaining(refused));
      }),
    );

    test(
      "[A45] a copy that was lost stays the one on record until another is stored",
      inFolder(async (database, folder) => {
        const bytes = attachmentFiles(folder);
        const store = attachments(database, { bytes });
        await store.put("s", bytesOf("abc"), text);
        await store.commit("s", [hashes.abc]);
        const [file = ""] = filesIn(folder);
        renameSync(join(folder, file), join(folder, "aside"));
        const failing = attachments(database, {
          bytes: { ...bytes, put: () => Promise.reject(new Error("no")) },
        });
        expect(await rejection(failing.put("s", bytesOf("abc"), text))).toMatchObject({
          code: "ATTACHMENT_FAILED",
        });
        // Not lost after all: a folder was late.
        renameSync(join(folder, "aside"), join(folder, file));
        expect(textOf((await store.get("s", hashes.abc)).content)).toBe("abc");
        rmSync(join(folder, file));
        await store.put("s", bytesOf("abc"), text);
        expect(textOf((await store.get("s", hashes.abc)).content)).toBe("abc");
        await store.sweep({ olderThan: 0 });
        expect(textOf((await store.get("s", hashes.abc)).content)).toBe("abc");
      }),
    );
  });
}
