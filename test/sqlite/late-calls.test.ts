import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { manualClock } from "../../src/model/time/clock.ts";
import { lateCallTests } from "../fixtures/late-call-tests.ts";
import { driverName, withFolder } from "./place.ts";

/** Another connection locks the file for writing. */
lateCallTests((story) =>
  withFolder(async (folder) => {
    const clock = manualClock(1_000);
    const database = await folder.open({ clock });
    const other = loadDriver(driverName).open(folder.file(), {
      readOnly: false,
    });
    try {
      await story(database, clock, async (begin, meanwhile) => {
        other.exec("BEGIN IMMEDIATE");
        void begin();
        // The call has had its turn at the event loop, and met the lock.
        await new Promise((resolve) => setImmediate(resolve));
        meanwhile();
        other.exec("COMMIT");
      });
    } finally {
      other.close();
    }
  }),
);
