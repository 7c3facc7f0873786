import { realpathSync } from "node:fs";
import { expect, test } from "vitest";
import { addNote, noteCount } from "../conformance/notes.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

/** No file may grow beyond a megabyte: writing on is an error of the disk, not a full one. */
const limited = ["bash", "-c", 'ulimit -f 1024 && exec "$0" "$@"'];

test("a disk that keeps failing is named with its file, reads go on, and nothing is half written", () =>
  withFolder(async (folder) => {
    const child = new Child("failing-disk.ts", [folder.file()], limited);
    expect(await child.ended).toBe(0);
    const told = JSON.parse(child.lines[0] ?? "null") as {
      refusals: { message: string; details: { reason: string } }[];
      readable: boolean;
    };
    const path = realpathSync(folder.file());
    expect(told).toMatchObject({
      refusals: [
        { code: "DISK_FAILED", retryable: true, details: { path } },
        { code: "DISK_FAILED", retryable: true, details: { path } },
      ],
      readable: true,
    });
    for (const { message, details } of told.refusals) {
      expect(details.reason).toMatch(/^(SQLITE_IOERR_WRITE|778)$/);
      expect(message).toContain(`"${path}"`);
      expect(message).toContain("check the system's log");
    }
    const database = await folder.open();
    const kept = await noteCount(database);
    expect(kept % 2).toBe(0);
    await database.write(addNote, { id: "afterwards" });
    expect(await noteCount(database)).toBe(kept + 2);
  }));
