import { readFileSync, statSync, utimesSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Checkpointer, checkpointBusyMs } from "../../src/backends/sqlite/log/checkpointer.ts";
import { LogThread } from "../../src/backends/sqlite/log/log-thread.ts";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import type { SqliteDatabase } from "../../src/sqlite.ts";
import type { Warning } from "../../src/kernel.ts";
import { addNote, createNoteTable, noteHalves } from "../conformance/notes.ts";
import { driverName, withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { whileLocked } from "./locked.ts";

const walBytes = 16_384;

/** Writes until a condition holds; the log is looked at only when it grows. */
async function writeUntil(database: SqliteDatabase, isFulfilled: () => boolean): Promise<void> {
  for (let round = 0; !isFulfilled(); round += 1)
    await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        database.write(addNote, {
          id: `${performance.now()}-${round}-${index}`,
          body: "x".repeat(500),
        }),
      ),
    );
}

describe("a reader that never ends", () => {
  test("is warned of once and named in stats, until it is gone and the log restarts", () =>
    withFolder(async (folder) => {
      const warnings: Warning[] = [];
      const database = await folder.open({
        limits: { walBytes },
        onWarning: (warning) => warnings.push(warning),
      });
      await database.write("tables", createNoteTable);
      const reader = new Child("lock-holder.ts", [folder.file(), "read"]);
      await reader.reported(1);
      const stats = () => database.stats();
      await writeUntil(database, () => warnings.length > 0 && stats().logHeldBack !== undefined);
      expect(stats().walBytes).toBeGreaterThan(64 * walBytes);
      expect(stats().logHeldBack).toContain("read transaction");
      expect(warnings).toMatchObject([{ code: "LOG_HELD_BACK" }]);
      // Only Linux tells who holds a lock.
      if (process.platform === "linux")
        for (const text of [warnings[0]?.message, stats().logHeldBack])
          expect(text).toContain(`process ${reader.process.pid} (`);

      const { restarts } = stats().checkpoints;
      reader.kill();
      await reader.ended;
      await writeUntil(database, () => stats().logHeldBack === undefined);
      expect(stats().checkpoints.restarts).toBeGreaterThan(restarts);
      expect(warnings).toHaveLength(1);
    }));
});

describe("a log with frames of others in it", () => {
  test("is written anew, byte by byte, when a reader does not let it be restarted at open", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      await database.write(addNote, { id: "a" });
      await whileLocked(folder, "read", async () => {
        await database.write(addNote, { id: "b" });
        const log = `${folder.file()}-wal`;
        const before = readFileSync(log);
        const longAgo = new Date(0);
        utimesSync(log, longAgo, longAgo);
        // What an open does before it acknowledges anything. It is not done
        // by an open here, since that writes to the log for other reasons.
        const thread = new LogThread(loadDriver(driverName), folder.file(), checkpointBusyMs);
        const checkpointer = new Checkpointer(thread, folder.file(), {
          boundBytes: walBytes,
          whileHeld: (action) => action(),
          onTouched: () => undefined,
          warn: () => undefined,
        });
        expect(await checkpointer.makeLogSound(30_000)).toBe(true);
        expect(statSync(log).mtimeMs).toBeGreaterThan(longAgo.getTime());
        expect(readFileSync(log).equals(before)).toBe(true);
        await checkpointer.close(false);
      });
      expect(await noteHalves(database)).toBe("a1 a2 b1 b2");
    }));
});
