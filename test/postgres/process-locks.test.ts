import { describe, expect, test } from "vitest";
import type { Database } from "../../src/kernel.ts";
import { processes } from "../../src/processes.ts";
import { sessions } from "../../src/sessions.ts";
import { until, withPlace } from "./place.ts";

/** Registered in this order, which is neither that of their ids nor that in which they are named. */
const ids = ["z", "m", "a"] as const;

/**
 * Two who lock several processes wait for each other for ever unless both
 * begin with the same one: whoever waits for the first has locked no other.
 */
describe("whoever locks several processes begins with the one registered first", () => {
  test.each<[string, (database: Database) => Promise<unknown>]>([
    ["a transfer", (database) => processes(database).transfer("t", "s", ["a", "m", "z"])],
    ["the end of a session", (database) => sessions(database).delete("s")],
  ])("%s", (_, call) =>
    withPlace(async (place) => {
      const database = await place.open();
      const store = processes(database);
      for (const session of ["s", "t"]) await sessions(database).create(session);
      for (const [index, id] of ids.entries()) {
        await store.register({ id, kind: "k" });
        // The handles are read in the order of frames, which is the other way round.
        await store.grant(id, { session: "s", frame: `f${9 - index}` });
        await store.grant(id, "t");
      }
      const [holder, watch] = [place.shell(), place.shell()];
      await holder.unsafe("BEGIN");
      await holder`SELECT key FROM holdfast_process WHERE id = 'z' FOR UPDATE`;
      const begun = call(database);
      await until(async () => {
        const waiting = await watch`
          SELECT 1 FROM pg_stat_activity
          WHERE application_name = ${place.app} AND wait_event_type = 'Lock'`;
        return waiting.length > 0;
      });
      const free = await watch`
        SELECT id FROM holdfast_process ORDER BY key FOR UPDATE SKIP LOCKED`;
      await holder.unsafe("COMMIT");
      await begun;
      expect(free.map(({ id }) => id as unknown)).toEqual(["m", "a"]);
    }),
  );
});
