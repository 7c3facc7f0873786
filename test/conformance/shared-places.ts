import { afterAll } from "vitest";
import type { Clock } from "../../src/model/clock.ts";
import { run } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import type { Statement } from "../../src/sql/statement.ts";
import type { Database } from "../../src/stores/database.ts";
import type { Backend, Place, PlaceOptions } from "./backend.ts";

/**
 * The same backend, whose places are used again: opening a database takes
 * longer than most tests of what is in it. A place that a test has left as it
 * was found (one open database, no shell) is emptied and serves the next one;
 * any other is removed as usual. A test that alters tables closes the database.
 */
export function sharingPlaces(backend: Backend): Backend {
  const spares = new Map<string, Spare>();
  afterAll(async () => {
    for (const spare of spares.values()) await spare.place.dispose();
  });
  return {
    ...backend,
    place: () => Promise.resolve(borrowed(backend, spares)),
  };
}

interface Spare {
  readonly place: Place;
  readonly database: Database;
  /** Follows the clock of the test that uses the place now. */
  readonly time: Time | undefined;
}

type Time = Clock & { current: Clock };

function borrowed(backend: Backend, spares: Map<string, Spare>): Place {
  let lent: { readonly kind: string; readonly spare: Spare } | undefined;
  let own: Promise<Place> | undefined;
  let isLeftAsFound = true;
  const place = (): Promise<Place> => (own ??= backend.place());

  return {
    async open(options: PlaceOptions = {}) {
      const kind = kindOf(options);
      if (lent !== undefined || own !== undefined || kind === undefined) {
        isLeftAsFound = false;
        return (await place()).open(options);
      }
      const spare = spares.get(kind) ?? (await newSpare(place, options));
      spares.delete(kind);
      own = Promise.resolve(spare.place);
      lent = { kind, spare };
      if (spare.time && options.clock) spare.time.current = options.clock;
      return spare.database;
    },
    async shell(...statements) {
      isLeftAsFound = false;
      return (await place()).shell(...statements);
    },
    async dispose() {
      if (own === undefined) return;
      if (
        lent !== undefined &&
        isLeftAsFound &&
        !spares.has(lent.kind) &&
        (await isEmptied(lent.spare.database))
      )
        spares.set(lent.kind, lent.spare);
      else await (await own).dispose();
    },
  };
}

/** Databases opened alike can stand in for each other. */
function kindOf(options: PlaceOptions): string | undefined {
  if (options.queueCalls !== undefined) return undefined;
  return `${options.clock !== undefined} ${options.isWithoutPoll === true}`;
}

async function newSpare(
  place: () => Promise<Place>,
  { clock, ...options }: PlaceOptions,
): Promise<Spare> {
  const time = clock && following(clock);
  const opened = await place();
  const database = await opened.open({
    ...options,
    ...(time && { clock: time }),
  });
  return { place: opened, database, time };
}

function following(clock: Clock): Time {
  return {
    current: clock,
    now() {
      return this.current.now();
    },
    wakeAt(instant, call) {
      return this.current.wakeAt(instant, call);
    },
  };
}

/** False when the test has closed it, or left something that cannot be emptied. */
async function isEmptied(database: Database): Promise<boolean> {
  try {
    await database.write("empty", function* () {
      for (const table of emptied) yield* run(table);
    });
    return true;
  } catch {
    return false;
  }
}

const emptied: readonly Statement[] = [
  sql`DELETE FROM holdfast_artifact`,
  sql`DELETE FROM holdfast_attachment`,
  sql`DELETE FROM holdfast_attachment_bytes`,
  sql`DELETE FROM holdfast_attachment_copy`,
  sql`DELETE FROM holdfast_blob`,
  sql`DELETE FROM holdfast_blob_put`,
  sql`DELETE FROM holdfast_execution`,
  sql`DELETE FROM holdfast_execution_backtrace`,
  sql`DELETE FROM holdfast_execution_delay`,
  sql`DELETE FROM holdfast_execution_event`,
  sql`DELETE FROM holdfast_execution_limit`,
  sql`DELETE FROM holdfast_execution_log`,
  sql`DELETE FROM holdfast_execution_response`,
  sql`DELETE FROM holdfast_execution_stack`,
  sql`DELETE FROM holdfast_execution_tag`,
  sql`DELETE FROM holdfast_queue_batch`,
  sql`DELETE FROM holdfast_queue_completed`,
  sql`DELETE FROM holdfast_queue_consumed`,
  sql`DELETE FROM holdfast_queue_item`,
  sql`DELETE FROM holdfast_queue_wake_mark`,
  sql`DELETE FROM holdfast_session`,
  sql`DELETE FROM holdfast_session_component`,
  sql`DELETE FROM holdfast_session_frame`,
  sql`DELETE FROM holdfast_session_lease`,
  sql`DELETE FROM holdfast_session_node`,
  sql`DELETE FROM holdfast_session_tombstone`,
  sql`DELETE FROM holdfast_session_turn`,
  sql`DELETE FROM holdfast_session_usage`,
];
