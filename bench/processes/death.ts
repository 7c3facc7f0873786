import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { createNoteTable } from "../../test/conformance/notes.ts";
import { Neighbour } from "../../test/crash/neighbours.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";

const deaths = size(20, 1);

/** From SIGKILL of an owner to its proven death in another process. */
export function death(): Promise<object> {
  return inScratch(async (folder) => {
    const path = join(folder, "app.db");
    const database = await openSqlite(path);
    await database.write("tables", createNoteTable);
    const elapsedMs: number[] = [];
    for (let round = 0; round < deaths; round += 1) {
      const doomed = await Neighbour.start(path);
      const owner = await doomed.owner();
      const noticed = new Promise<number>((resolve) => {
        const stop = database.subscribe((hint) => {
          if (hint.kind !== "death" || hint.owner !== owner) return;
          stop();
          resolve(performance.now());
        });
      });
      const killedMs = performance.now();
      doomed.child.kill();
      elapsedMs.push((await noticed) - killedMs);
      await doomed.child.ended;
    }
    await database.close();
    return {
      value: rounded(median(elapsedMs)),
      unit: "ms from SIGKILL to proven death, median",
      max: rounded(Math.max(...elapsedMs)),
      deaths,
    };
  });
}
