import { expect, test } from "vitest";
import { loadDriver } from "../../src/backends/sqlite/drivers.ts";
import { manualClock } from "../../src/model/clock.ts";
import type { ManualClock } from "../../src/model/clock.ts";
import type { Database } from "../../src/stores/database.ts";
import { answerLate, lateCalls } from "../fixtures/late-calls.ts";
import type { WhileOthersWrite } from "../fixtures/late-calls.ts";
import { driverName, withFolder } from "./place.ts";

/** A database whose file another connection can lock for writing. */
function besideAnother(
  story: (
    database: Database,
    clock: ManualClock,
    hold: WhileOthersWrite,
  ) => Promise<void>,
): () => Promise<void> {
  return () =>
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
