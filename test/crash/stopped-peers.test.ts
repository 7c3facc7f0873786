import { readFileSync, symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { rejection } from "../conformance/backend.ts";
import { addNote, noteCount } from "../conformance/notes.ts";
import { until } from "../conformance/runtime/waiting.ts";
import { Child } from "./child.ts";
import { withFile } from "./neighbours.ts";

/** A signal is on its way for a moment, in which a process goes on. Only Linux tells when it has arrived. */
async function untilStopped({ process: { pid } }: Child): Promise<void> {
  if (process.platform !== "linux") return;
  await until(() => / T /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
}

describe("a peer that is stopped", () => {
  test.each([
    ["in the middle of its hold", "hold"],
    ["when it was about to take its turn", "turn"],
  ])("%s keeps nobody from writing and hearing", (_, moment) =>
    withFile(async (folder, start) => {
      const database = await folder.open();
      const neighbour = await start();
      const stopped = new Child("stopped-peer.ts", [folder.file(), moment]);
      await stopped.reported(1);
      // Told to go on before that, it would stop afterwards and for ever.
      await untilStopped(stopped);
      try {
        for (let round = 0; round < 20; round += 1) {
          await database.write(addNote, { id: `ours-${round}` });
          await neighbour.write(`theirs-${round}`);
        }
        await neighbour.until(() => neighbour.heardKeys.includes("ours-19"));
        expect(await noteCount(database)).toBe(80);
        expect(database.stats().peers.connected).toBe(2);
      } finally {
        stopped.process.kill("SIGCONT");
        expect(await stopped.ended).toBe(0);
      }
    }),
  );

  test("while it holds the write lock is named, with what to do, by those who give up; then they go on", () =>
    withFile(async (folder) => {
      const database = await folder.open({ busyTimeout: "100 ms" });
      const holder = new Child("lock-holder.ts", [folder.file(), "write"]);
      await holder.reported(1);
      const { pid } = holder.process;
      const refused = async (): Promise<object> =>
        rejection(database.write(addNote, { id: "in vain" }));
      try {
        const running = await refused();
        holder.process.kill("SIGSTOP");
        await untilStopped(holder);
        const stopped = await refused();
        // An open waits for no lock; the first write after it does.
        symlinkSync(folder.file(), folder.file("link.db"));
        const late = await folder.open({ busyTimeout: 50 }, {}, "link.db");
        const first = await rejection(late.write(addNote, { id: "first" }));
        for (const error of [running, stopped, first])
          expect(error).toMatchObject({
            code: "DATABASE_BUSY",
            retryable: true,
          });
        // Only Linux tells who holds a lock.
        if (process.platform !== "linux") return;
        expect(running).toMatchObject({
          message: expect.stringContaining(`Process ${pid} (`),
          details: { budgetMs: 100, holder: { pid, isStopped: false } },
        });
        for (const error of [stopped, first])
          expect(error).toMatchObject({
            message: expect.stringContaining(`kill -CONT ${pid}`),
            details: { holder: { pid, isStopped: true } },
          });
      } finally {
        holder.process.kill("SIGCONT");
        holder.kill();
        await holder.ended;
      }
      await database.write(addNote, { id: "afterwards" });
    }));

  test("before we join is alive, in nobody's way, and told what it missed when it goes on", () =>
    withFile(async (folder, start) => {
      const neighbour = await start();
      const owner = await neighbour.owner();
      neighbour.child.process.kill("SIGSTOP");
      await untilStopped(neighbour.child);
      const database = await folder.open();
      expect(await database.liveness(owner)).toBe("alive");
      await database.write(addNote, { id: "meanwhile" });
      expect(neighbour.heardUnknown).toBe(0);
      neighbour.child.process.kill("SIGCONT");
      await neighbour.until(() => neighbour.heardUnknown > 0);
      await database.write(addNote, { id: "afterwards" });
      await neighbour.until(() => neighbour.heardKeys.includes("afterwards"));
      expect(database.stats().peers.connected).toBe(1);
    }));
});
