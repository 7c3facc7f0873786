import { manualClock } from "../../src/model/time/clock.ts";
import { lateCallTests } from "../fixtures/late-call-tests.ts";
import { until, withPlace } from "./place.ts";

/** A shell locks the rows that calls need. */
lateCallTests((story) =>
  withPlace(async (place) => {
    const clock = manualClock(1_000);
    const database = await place.open({ clock });
    const shell = place.shell();
    const watch = place.shell();
    await story(database, clock, async (begin, meanwhile) => {
      await shell.unsafe("BEGIN");
      await shell`SELECT key FROM holdfast_execution FOR UPDATE`;
      await shell`SELECT key FROM holdfast_process FOR UPDATE`;
      await shell`SELECT key FROM holdfast_session FOR UPDATE`;
      await shell`SELECT key FROM holdfast_effect FOR UPDATE`;
      await shell`SELECT key FROM holdfast_await_event FOR UPDATE`;
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
  }),
);
