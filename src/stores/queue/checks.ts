import { HoldfastError } from "../../model/errors.ts";
import { batchesPerClaimMax } from "../../model/queue.ts";
import type { Boundary } from "../../model/queue.ts";
import { checkedCount, checkedText, isStorable } from "../../model/shape.ts";
import type { QueueClaimRef } from "./claim.ts";

/** What callers may give to a queue, checked where it enters. */

const boundaries: readonly Boundary[] = ["idle", "activeTurn"];

export function checkedBoundary(boundary: Boundary = "idle"): Boundary {
  return checkedChoice("boundary", boundary, boundaries);
}

const states = ["all", "pending"] as const;

export function checkedState(
  state: (typeof states)[number] = "all",
): (typeof states)[number] {
  return checkedChoice("state", state, states);
}

function checkedChoice<T extends string>(
  option: string,
  given: T,
  choices: readonly T[],
): T {
  if (choices.includes(given)) return given;
  throw new HoldfastError(
    "OPTION_INVALID",
    `${option} is one of ${choices.join(", ")}; got something else.`,
    { option },
  );
}

export function checkedBatchIds(ids: readonly string[]): readonly string[] {
  checkedCount("The number of batches", listed(ids).length, {
    min: 0,
    max: batchesPerClaimMax,
  });
  return ids.map((id) => checkedText("The id of a batch", id));
}

export function checkedClaim(ref: QueueClaimRef): QueueClaimRef {
  if (typeof ref !== "object" || ref === null) throw notAClaim();
  const { claim, batches } = ref;
  // An unknown claim is for the database to refuse.
  if (!isStorable(claim) || claim.length > claimCharactersMax)
    throw notAClaim();
  return { claim, batches: checkedBatchIds(batches) };
}

const claimCharactersMax = 128;
const claimsMax = 256;

export function checkedClaims(
  claims: readonly QueueClaimRef[],
): readonly QueueClaimRef[] {
  const range = { min: 0, max: claimsMax };
  checkedCount("The number of claims", listed(claims).length, range);
  return claims.map(checkedClaim);
}

function listed<T>(given: readonly T[]): readonly T[] {
  if (!Array.isArray(given)) throw notAClaim();
  return given as readonly T[];
}

function notAClaim(): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    "Expected the ref of a claim as claimTurn, claimCommand and claimBatches return it: its claim and the ids of its batches. Pass that object as it is.",
    { option: "claim" },
  );
}
