import { integersOf } from "../../../sql/dialect.ts";
import { rows } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { undamaged } from "../../damage.ts";
import { eventOf } from "../event-row.ts";
import type { EventRow } from "../event-row.ts";

/** Where in a log an execution ended. */
export interface ResultPlace {
  readonly execution: number;
  readonly version: number;
}

/** The hashes of the results at some places, by `execution#version`: for those who did not copy them. */
export function* resultHashesAt(
  places: readonly ResultPlace[],
): Tx<ReadonlyMap<string, string>> {
  const hashes = new Map<string, string>();
  if (places.length === 0) return hashes;
  const found = yield* rows<EventRow & { readonly execution: number }>(sql`
    SELECT e.execution, e.version, e.at, e.responses, e.kind, e.call, e.seen, e.body, NULL AS payload
    FROM holdfast_execution x JOIN holdfast_execution_event e ON e.execution = x.key AND e.version = x.version
    WHERE x.key IN ${integersOf(places.map(({ execution }) => execution))}`);
  for (const row of found) {
    const event = undamaged(() => eventOf(row).event);
    if (event?.kind === "finished")
      hashes.set(`${row.execution}#${row.version}`, event.resultHash);
  }
  return hashes;
}
