import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { createNoteTable } from "../../test/conformance/notes.ts";
import { Neighbour } from "../../test/crash/neighbours.ts";
import { inScratch, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";

const wakes = size(500, 5);

/** From the acknowledged commit in one process to the waiter in another. */
export function wake(): Promise<object> {
  return inScratch(async (folder) => {
    const path = join(folder, "app.db");
    const database = await openSqlite(path);
    await database.write("tables", createNoteTable);
    const heardMs = new Map<string, number>();
    database.subscribe((hint) => {
      if (hint.kind === "change" && !heardMs.has(hint.key))
        heardMs.set(hint.key, performance.timeOrigin + performance.now());
    });
    const writer = await Neighbour.start(path);
    for (let round = 0; round < wakes; round += 1) await writer.write(`wake-${round}`);
    // The last ring may be on its way.
    while (heardMs.size < wakes) await new Promise((resolve) => setImmediate(resolve));
    const elapsedMs = writer.facts
      .flatMap(({ wrote, at }) =>
        wrote === undefined || at === undefined
          ? []
          : [(heardMs.get(wrote) ?? Number.POSITIVE_INFINITY) - at],
      )
      .toSorted((a, b) => a - b);
    writer.child.tell("close");
    await writer.child.ended;
    const { polls } = database.stats();
    await database.close();
    const percentile = (share: number): number =>
      rounded(elapsedMs[Math.floor(elapsedMs.length * share)] ?? Number.NaN);
    return {
      value: percentile(0.5),
      unit: "ms from acknowledgement to the waiter, p50 (negative: the waiter was first)",
      p99: percentile(0.99),
      max: rounded(elapsedMs.at(-1) ?? Number.NaN),
      wakes,
      polls,
    };
  });
}
