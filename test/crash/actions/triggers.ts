import { row, sql, type Database } from "../../../src/kernel.ts";
import { triggers, type OccurrenceDraft } from "../../../src/triggers.ts";

export const occurrence: OccurrenceDraft = {
  key: "delivery-4711",
  source: { type: "webhook", key: "github" },
  payload: { branch: "main" },
};

export function record(database: Database): Promise<object> {
  return triggers(database).record(occurrence);
}

export async function fire(database: Database): Promise<{ readonly fired: readonly number[] }> {
  return {
    fired: (await isDue(database)) ? [await firedNext(database)] : [],
  };
}

function isDue(database: Database): Promise<boolean> {
  const now = database.clock.now();
  return database.read("due", function* () {
    const due = sql`SELECT key FROM holdfast_schedule WHERE due_at <= ${now}`;
    return (yield* row(due)) !== undefined;
  });
}

/** Runs the schedules until one of them has fired; the instant that it fired for. */
function firedNext(database: Database): Promise<number> {
  return new Promise((resolve, reject) => {
    const running = triggers(database).run({
      onError: reject,
      onFired({ instant }) {
        running.close().then(() => resolve(instant), reject);
      },
    });
  });
}
