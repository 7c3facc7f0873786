import { awaitsOwned } from "./effect/await/event-row.ts";
import { effectsOwned } from "./effect/effect-row.ts";
import { leaseOwned } from "./lease/lease-row.ts";
import { queueOwned } from "./queue/batch-row.ts";
import type { OwnedRows } from "./removal.ts";
import { triggersOwned } from "./trigger/subscription-row.ts";

/**
 * Everything else that a session owns, in the order of removal. The lease is last: until then the
 * fence tells whose claims those were.
 */
export const ownedBySessions: readonly OwnedRows[] = [
  ...queueOwned,
  ...effectsOwned,
  ...awaitsOwned,
  ...triggersOwned,
  ...leaseOwned,
];
