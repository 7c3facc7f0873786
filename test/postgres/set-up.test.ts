import { describe, expect, test } from "vitest";
import { rows, run, sql } from "../../src/kernel.ts";
import { setUpAtOnce, setUpOnce } from "../crash/set-up-at-once.ts";
import { until, withNewPlace, withPlace } from "./place.ts";
import { makeAppSchema } from "./spare-schemas.ts";

describe("setting up in a schema", () => {
  test("processes that open a new schema at once apply each migration once", () =>
    withNewPlace(async (place) => {
      await makeAppSchema(place.schema);
      const told = `${place.url}#${place.schema}`;
      expect(await setUpAtOnce(told)).toEqual(setUpOnce);
      const database = await place.open();
      expect(await database.read("goods", () => rows(sql`SELECT * FROM app_goods`))).toEqual([
        { id: "hat", n: 1 },
      ]);
    }));

  test("waits for another that is at it for as long as that takes", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const lock = await lockOf(place.schema);
      const shell = place.shell();
      await shell.unsafe(`BEGIN; SELECT pg_advisory_xact_lock(${lock})`);
      const report = database.setUp("shop", [
        { name: "1", up: () => run(sql`CREATE TABLE app_goods (id TEXT)`) },
      ]);
      // Longer than a statement of an app would wait for a lock.
      const [{ at } = { at: 0 }] = await shell<{ at: number }[]>`
        SELECT extract(epoch FROM clock_timestamp())::float8 AS at`;
      const watch = place.shell();
      await until(async () => {
        const [found] = await watch<{ n: number }[]>`
          SELECT count(*)::int AS n FROM pg_stat_activity
          WHERE application_name = ${place.app} AND wait_event = 'advisory'
            AND extract(epoch FROM clock_timestamp()) > ${at} + 2.5`;
        return found?.n === 1;
      });
      await shell.unsafe("COMMIT");
      expect(await report).toEqual({ applied: ["1"] });
      expect(database.stats().reruns).toBe(0);
    }));
});

async function lockOf(schema: string): Promise<string> {
  const bytes = new Uint8Array(
    await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`holdfast schema ${schema}`)),
  );
  const view = new DataView(bytes.buffer);
  return `${view.getInt32(0)}, ${view.getInt32(4)}`;
}
