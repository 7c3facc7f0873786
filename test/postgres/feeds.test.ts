import { describe, expect, test } from "vitest";
import {
  autoKey,
  belowHorizon,
  feedTransaction,
  strict,
  text,
  rows,
  run,
  sql,
  type Database,
} from "../../src/kernel.ts";
import { until, withPlace } from "./place.ts";

interface Entry {
  readonly tx: number;
  readonly seq: number;
  readonly body: string;
}

/** What a feed's reader asks: everything behind its cursor that is settled. */
function behind(
  database: Database,
  cursor: { readonly tx: number; readonly seq: number },
): Promise<readonly Entry[]> {
  return database.read("feed", () =>
    rows<Entry>(sql`
      SELECT tx, seq, body FROM app_feed
      WHERE (tx, seq) > (${cursor.tx}, ${cursor.seq}) AND ${belowHorizon}
      ORDER BY tx, seq LIMIT 100`),
  );
}

describe("a feed across aggregates", () => {
  test("never passes over a transaction that took its number first and commits last", () =>
    withPlace(async (place) => {
      const database = await place.open();
      await database.write("table", () =>
        run(sql`
          CREATE TABLE app_feed (seq ${autoKey}, tx ${feedTransaction}, body ${text} NOT NULL) ${strict}`),
      );
      const start = { tx: 0, seq: 0 };
      const first = place.shell();
      await first`BEGIN`;
      await first`INSERT INTO app_feed (body) VALUES ('took 1, commits last')`;
      await database.write("second", () =>
        run(sql`INSERT INTO app_feed (body) VALUES ('took 2, commits first')`),
      );
      const committed = await database.read("all", () =>
        rows<Entry>(sql`SELECT seq, body FROM app_feed`),
      );
      expect(committed).toEqual([{ seq: 2, body: "took 2, commits first" }]);
      expect(await behind(database, start)).toEqual([]);
      await first`COMMIT`;
      // Other transactions of the server hold the horizon back for a moment.
      await until(async () => (await behind(database, start)).length > 0);
      await until(async () => (await behind(database, start)).length === 2);
      const both = await behind(database, start);
      expect(both.map((entry) => entry.seq)).toEqual([1, 2]);
      expect(Number.isSafeInteger(both[0]?.tx)).toBe(true);
      const [one, two] = both;
      if (one === undefined || two === undefined) throw new Error("Missing.");
      expect(one.tx).toBeLessThan(two.tx);
      expect(await behind(database, one)).toEqual([two]);
      expect(await behind(database, two)).toEqual([]);
    }));
});
