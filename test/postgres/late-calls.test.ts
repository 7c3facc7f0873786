import { expect, test } from "vitest";
import { manualClock } from "../../src/model/clock.ts";
import type { ManualClock } from "../../src/model/clock.ts";
import type { Database } from "../../src/stores/database.ts";
import { answerLate, lateCalls } from "../fixtures/late-calls.ts";
import type { WhileOthersWrite } from "../fixtures/late-calls.ts";
import { until, withPlace } from "./place.ts";

/** A database whose sessions a shell can lock. */
function besideAnother(
  story: (
    database: Database,
    clock: ManualClock,
    whileOthersWrite: WhileOthersWrite,
  ) => Promise<void>,
): () => Promise<void> {
  return () =>
    withPlace(async (place) => {
      const clock = manualClock(1_000);
      const database = await place.open({ clock });
      const shell = place.shell();
      const watch = place.shell();
      await story(database, clock, async (begin, meanwhile) => {
        await shell.unsafe("BEGIN");
        await shell`SELECT key FROM holdfast_session WHERE id = 's' FOR UPDATE`;
        void begin();
        await until(async () => {
          const waiting = await watch`
            SELECT 1 FROM pg_stat_activity
            WHERE application_name = ${place.app} AND wait_event_type = 'Lock'`;
          return waiting.length > 0;
        });
        meanwhile();
        await shell.unsafe("COMMIT");
      });
    });
}

test.each(lateCalls)(
  "when a lease has run out by the time a call may write, $name",
  (late) =>
    besideAnother(async (database, clock, whileOthersWrite) => {
      const found = await answerLate(late, database, clock, whileOthersWrite);
      const { answer, fence } = late;
      expect(found).toMatchObject({ answer, revision: 0, fence });
    })(),
);
