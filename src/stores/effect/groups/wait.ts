import { isOverdue } from "../../../model/effect/await-event.ts";
import type { Interest, WaitOptions } from "../../../sql/database.ts";
import { waitUntil } from "../../wait.ts";
import type { AwaitContext } from "../await/context.ts";
import { awaitEventEnded } from "../await/event-row.ts";
import { endAwaitEvent } from "../await/settle.ts";
import { aggregateOf, deletionOf } from "../scope.ts";
import {
  assertSameGroup,
  groupChanged,
  groupNotFound,
  groupTitle,
  type GroupPlace,
  type GroupTerms,
} from "./group-row.ts";
import { openGroup } from "./open.ts";
import { settleGroup } from "./place.ts";
import { readGroup, type GroupStanding } from "./read.ts";

interface Awaited<T> {
  /** The definition of the group, for a caller that may open it. */
  readonly terms: GroupTerms | undefined;
  /** The answer that follows from the recorded order; undefined while there is none. */
  readonly answer: (group: GroupStanding) => T | undefined;
}

/**
 * Resolves when an answer follows from the order in which the members of a group have ended. The
 * order is recorded before a caller gets the answer. A repeated call, after a crash or in another
 * process, therefore gets the same answer. Once the order is recorded, the wait only reads.
 *
 * @throws HoldfastError `GROUP_NOT_FOUND`, `GROUP_CONFLICT`,
 *   `AWAIT_EVENT_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`,
 *   `CORRUPT_ROW`, and those of `waitUntil`.
 */
export async function waitForGroup<T extends object>(
  context: AwaitContext,
  place: GroupPlace,
  awaited: Awaited<T>,
  wait: WaitOptions,
): Promise<T> {
  let seen: GroupStanding | undefined;
  return waitUntil<T>(
    context.database,
    {
      what: groupTitle(place),
      clock: context.clock,
      interests: interestsIn(place, undefined),
      async look() {
        const found = await openedGroup(context, place, awaited.terms);
        // If the session is created again, its group is a different one.
        if ((seen ?? found).rowKey !== found.rowKey) throw groupNotFound(place);
        seen = found;
        const before = awaited.answer(found);
        if (before !== undefined) return { isThere: true, value: before };
        if (await recordEnds(context, place, found)) {
          seen = await openedGroup(context, place, awaited.terms);
          const after = awaited.answer(seen);
          if (after !== undefined) return { isThere: true, value: after };
        }
        return {
          isThere: false,
          again: earliestDue(seen),
          interests: interestsIn(place, seen),
        };
      },
    },
    wait,
  );
}

/**
 * The operations that end an effect. An effect that was never requested has no row key yet, so it
 * is known only by its scope.
 */
const effectEnds = ["finishEffect", "recordEffect"];

/**
 * The changes that may end a member. Until a look has found the group, these include the changes of
 * every group.
 */
function interestsIn(place: GroupPlace, seen: GroupStanding | undefined): readonly Interest[] {
  const aggregate = aggregateOf(place);
  return [
    { operation: groupChanged, key: seen && String(seen.rowKey) },
    ...effectEnds.map((operation) => ({ operation, key: aggregate })),
    ...eventEnds(seen),
    ...deletionOf(place.scope.session),
  ];
}

function eventEnds(seen: GroupStanding | undefined): readonly Interest[] {
  const operation = awaitEventEnded;
  if (seen === undefined) return [{ operation }];
  return seen.standings.flatMap((member) =>
    member.kind === "open" && member.event !== undefined ? { operation, key: member.event } : [],
  );
}

async function openedGroup(
  context: AwaitContext,
  place: GroupPlace,
  terms: GroupTerms | undefined,
): Promise<GroupStanding> {
  const { database } = context;
  let found = await database.read(readGroup(context), place);
  if (found === undefined && terms !== undefined) {
    await database.write(openGroup(context), { ...place, ...terms });
    found = await database.read(readGroup(context), place);
  }
  if (found === undefined) throw groupNotFound(place);
  if (terms !== undefined) assertSameGroup(place, terms, found);
  return found;
}

/**
 * Records ends and timeouts that were not recorded by the transaction that caused them; false when
 * there are none.
 */
async function recordEnds(
  context: AwaitContext,
  place: GroupPlace,
  group: GroupStanding,
): Promise<boolean> {
  const { database, clock } = context;
  const now = clock.now();
  const hasPlace = new Set(group.placed.map(({ ordinal }) => ordinal));
  let isNew = false;
  for (const [ordinal, member] of group.members.entries()) {
    const standing = group.standings[ordinal];
    if (standing === undefined || hasPlace.has(ordinal)) continue;
    if (standing.kind === "ended") isNew = true;
    else if (isOverdue({ state: "open", dueAt: standing.dueAt }, now)) {
      const event = { scope: place.scope, key: member.key };
      const ending = { ...event, end: "timedOut" } as const;
      await database.write(endAwaitEvent(context), ending);
      isNew = true;
    }
  }
  if (isNew) await database.write(settleGroup(context), place);
  return isNew;
}

function earliestDue(group: GroupStanding): number | undefined {
  const instants = group.standings.flatMap((member) =>
    member.kind === "open" && member.dueAt !== null ? member.dueAt : [],
  );
  return instants.length === 0 ? undefined : Math.min(...instants);
}
