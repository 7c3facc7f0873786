import { manualClock } from "../../../src/model/time/clock.ts";
import type { ManualClock } from "../../../src/model/time/clock.ts";
import { blobs, maintenance } from "../../../src/blobs.ts";
import type { Maintenance } from "../../../src/blobs.ts";
import type { Database } from "../../../src/kernel.ts";
import { withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { bytesOf } from "../blob/owners.ts";

/** A database whose garbage is collected at once. */
interface Fixture {
  readonly database: Database;
  readonly clock: ManualClock;
  readonly keeper: Maintenance;
}

export type InFixture = (body: (fixture: Fixture) => Promise<void>) => () => Promise<void>;

export function inFixture(backend: Backend): InFixture {
  return (body) => () =>
    withPlace(backend, async (place) => {
      const clock = manualClock(1_000_000);
      const database = await place.open({ clock });
      const keeper = maintenance(database, { grace: 0 });
      await body({ database, clock, keeper });
    });
}

/** Puts texts that nothing refers to, one after the other. */
export async function putOrphans(database: Database, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) await blobs(database).put(bytesOf(text));
}
