import { processPrefix } from "../../model/trigger.ts";
import type { TriggerSource } from "../../model/trigger.ts";
import { textsOf } from "../../sql/dialect.ts";
import { rows, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { sift } from "../damage.ts";
import type { Sifted } from "../damage.ts";
import { listRunning } from "../process/worklist.ts";
import type { Page } from "../list.ts";
import { deliveryOf } from "./occurrence-row.ts";
import type { TriggerDelivery, DeliveryRow } from "./occurrence-row.ts";

export interface ListUnstarted {
  /** The `next` of the page before; empty for the first. */
  readonly after: string;
  readonly limit: number;
  readonly now: number;
}

/** A process that an occurrence has registered and that nobody has begun. */
export interface UnstartedDelivery extends TriggerDelivery {
  readonly process: string;
  /** The key of the occurrence. */
  readonly occurrence: string;
  readonly source: TriggerSource;
}

/** Deliveries whose process nobody has begun or holds: that part of the recovery worklist which triggers have registered. */
export const listUnstarted: Operation<
  ListUnstarted,
  Page<UnstartedDelivery>
> = plainOperation("listUnstartedDeliveries", {
  key: () => "",
  *one({ after, limit, now }) {
    const page = yield* listRunning({
      // The ids of these processes follow one another.
      after: after === "" ? processPrefix : after,
      isStarted: false,
      limit,
      now,
    });
    const ids = page.items
      .filter(({ holder }) => holder === undefined)
      .map(({ process }): string => process.id)
      .filter(isTriggered);
    const { items, damaged } = yield* deliveriesFor(ids);
    const { next } = page;
    return {
      items,
      damaged: [
        ...page.damaged.filter(({ key }) => isTriggered(key)),
        ...damaged,
      ],
      next: next !== undefined && isTriggered(next) ? next : undefined,
    };
  },
});

function isTriggered(id: string): boolean {
  return id.startsWith(processPrefix);
}

interface StartedRow extends DeliveryRow {
  readonly process: string;
  readonly id: string;
  readonly source_type: string;
  readonly source_key: string;
}

function* deliveriesFor(ids: readonly string[]): Tx<Sifted<UnstartedDelivery>> {
  if (ids.length === 0) return { items: [], damaged: [] };
  const found = yield* rows<StartedRow>(sql`
    SELECT d.occurrence, d.revision, d.process, d.refusal, s.session, s.session_id, s.generation, s.name,
      o.id, o.source_type, o.source_key
    FROM holdfast_trigger_delivery d
      JOIN holdfast_trigger_subscription s ON s.key = d.subscription
      JOIN holdfast_trigger_occurrence o ON o.key = d.occurrence
    WHERE d.process IN ${textsOf(ids)} ORDER BY d.process`);
  return sift(
    "holdfast_trigger_delivery",
    found,
    ({ process }) => process,
    (each) => ({
      ...deliveryOf(each),
      process: each.process,
      occurrence: each.id,
      source: { type: each.source_type, key: each.source_key },
    }),
  );
}
