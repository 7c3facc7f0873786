import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { effects } from "../../src/stores/effect/effects.ts";
import { inScratch, median } from "../scratch.ts";
import { executeAll, replayAll, turnsIn } from "./load.ts";
import { size } from "../sizes.ts";

const count = size(1_000, 10);
const rounds = size(7, 1);

/** A turn that is run again: everything it did is recorded. */
export function replay(): Promise<object> {
  return inScratch(async (folder) => {
    const database = await openSqlite(join(folder, "ours.db"));
    const turns = await turnsIn(database, 1);
    await executeAll(effects(database), turns, count);
    const [turn] = turns;
    if (turn === undefined) throw new Error("There is no turn.");
    const { commits } = database.stats();
    const values: number[] = [];
    for (let round = 0; round < rounds; round += 1)
      values.push(await replayAll(database, turn, count));
    const written = database.stats().commits - commits;
    await database.close();
    return {
      value: Math.round(median(values)),
      unit: "effects/s",
      rounds,
      transactionsThatWrote: written,
      note: `one caller, ${count} recorded effects, one read each`,
    };
  });
}
