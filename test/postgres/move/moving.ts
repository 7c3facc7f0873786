import { manualClock } from "../../../src/model/time/clock.ts";
import { giveUpMove, moveToPostgres } from "../../../src/open/move/move-to-postgres.ts";
import type { MoveOptions, MoveOutcome } from "../../../src/open/move/move-to-postgres.ts";
import { writeEveryRow } from "../../conformance/every-row.ts";
import { ownTableNames } from "../../fixtures/schema.ts";
import { driverName, withFolder } from "../../sqlite/place.ts";
import type { Folder } from "../../sqlite/place.ts";
import { withPlace } from "../place.ts";
import type { Place } from "../place.ts";

/** What each database has for itself; every other table is moved. */
const localTables: readonly string[] = [
  "holdfast_app_migration",
  "holdfast_move",
  "holdfast_stream",
  "holdfast_stream_part",
  "holdfast_tick",
];

export const movedTables: readonly string[] = ownTableNames.filter(
  (name) => !localTables.includes(name),
);

const noon = Date.UTC(2026, 10, 17, 12);

/** A folder for the source and a schema for the target. */
export function withBoth(body: (folder: Folder, place: Place) => Promise<void>): Promise<void> {
  return withFolder((folder) => withPlace((place) => body(folder, place)));
}

/** A source with rows in every table. */
export async function filled(folder: Folder): Promise<void> {
  const clock = manualClock(noon);
  const database = await folder.open({ clock });
  await writeEveryRow(database, clock);
  await database.close();
  folder.shell(["DELETE FROM holdfast_move"]);
}

function optionsFor(place: Place, options: MoveOptions): MoveOptions {
  return {
    ...options,
    sqlite: { driver: driverName, ...options.sqlite },
    postgres: { schema: place.schema, ...options.postgres },
  };
}

export function move(
  folder: Folder,
  place: Place,
  options: MoveOptions = {},
): Promise<MoveOutcome> {
  return moveToPostgres(folder.file(), place.url, optionsFor(place, options));
}

export function giveUp(
  folder: Folder,
  place: Place,
  options: MoveOptions & { readonly isTargetGone?: boolean } = {},
): Promise<void> {
  return giveUpMove(folder.file(), place.url, {
    ...options,
    ...optionsFor(place, options),
  });
}

/** Rows of each table that is moved, as a shell sees them. */
export async function targetCounts(place: Place): Promise<Readonly<Record<string, number>>> {
  const shell = place.shell();
  const columns = movedTables.map((table) => `(SELECT count(*)::int FROM ${table}) AS ${table}`);
  const [found] = await shell.unsafe(`SELECT ${columns.join(", ")}`);
  await shell.end();
  return Object.fromEntries(movedTables.map((table) => [table, Number(found?.[table])]));
}

/** Tables of the target that have rows. */
export async function targetFilled(place: Place): Promise<readonly string[]> {
  const counts = await targetCounts(place);
  return movedTables.filter((table) => (counts[table] ?? 0) > 0);
}

export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("It was expected to reject.");
}
