import { isOverdue } from "../../../model/await-event.ts";
import type { Clock } from "../../../model/clock.ts";
import type { GroupKind, GroupMember } from "../../../model/effect-group.ts";
import { optionsOf } from "../../../model/shape.ts";
import type { Change } from "../../../sql/operation.ts";
import { aggregateOf } from "../await/event-row.ts";
import { endAwaitEvent } from "../await/settle.ts";
import { awaitEventEnded } from "../await/topics.ts";
import type { Database, WaitOptions } from "../../../sql/database.ts";
import { waitUntil } from "../../wait.ts";
import { givenWait, waitNames } from "../../given.ts";
import { assertSameGroup, groupNotFound, groupTitle } from "./errors.ts";
import type { GroupPlace } from "./group-row.ts";
import { openGroup } from "./open.ts";
import { settleGroup } from "./place.ts";
import { readGroup } from "./read.ts";
import type { GroupStanding } from "./read.ts";
import { groupChanged } from "./topics.ts";

interface Around {
  readonly database: Database;
  readonly clock: Clock;
}

interface Wanted<T> {
  /** What the group is, for whoever may open it. */
  readonly described:
    | { readonly kind: GroupKind; readonly members: readonly GroupMember[] }
    | undefined;
  /** What follows from the recorded order; undefined as long as nothing does. */
  readonly answer: (group: GroupStanding) => T | undefined;
}

/**
 * Resolves when what is wanted follows from the order in which the members of
 * a group have ended. That order is recorded before anybody gets an answer
 * from it, so whoever asks again, after a crash or elsewhere, gets the same;
 * once it is, only reads are made.
 *
 * @throws HoldfastError `GROUP_NOT_FOUND`, `GROUP_CONFLICT`,
 *   `AWAIT_EVENT_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`,
 *   `CORRUPT_ROW`, and those of `waitUntil`.
 */
export async function waitForGroup<T extends object>(
  around: Around,
  place: GroupPlace,
  wanted: Wanted<T>,
  options?: WaitOptions,
): Promise<T> {
  let seen: GroupStanding | undefined;
  return waitUntil<T>(
    around.database,
    {
      what: groupTitle(place),
      clock: around.clock,
      isRelevant: (change) => isAbout(place, seen, change),
      async look() {
        const found = await openedGroup(around, place, wanted.described);
        // Should the session be created again, its group is another one.
        if ((seen ?? found).rowKey !== found.rowKey) throw groupNotFound(place);
        seen = found;
        const before = wanted.answer(found);
        if (before !== undefined) return { isThere: true, value: before };
        if (await recorded(around, place, found)) {
          seen = await openedGroup(around, place, wanted.described);
          const after = wanted.answer(seen);
          if (after !== undefined) return { isThere: true, value: after };
        }
        return { isThere: false, again: earliestDue(seen) };
      },
    },
    givenWait(optionsOf(options, waitNames)),
  );
}

/** What ends an effect. Who asks for the first time is not known by its row yet, only by its scope. */
const effectEnds: ReadonlySet<string> = new Set([
  "finishEffect",
  "recordEffect",
]);

/** Whether a change may be the end of a member. */
function isAbout(
  place: GroupPlace,
  seen: GroupStanding | undefined,
  { operation, key }: Change,
): boolean {
  if (operation === "deleteSession") return key === place.scope.session?.id;
  if (operation === groupChanged)
    return seen === undefined || key === String(seen.rowKey);
  if (effectEnds.has(operation)) return key === aggregateOf(place);
  if (operation !== awaitEventEnded) return false;
  return (
    seen === undefined ||
    seen.standings.some(
      (member) => member.kind === "open" && member.event === key,
    )
  );
}

async function openedGroup(
  { database, clock }: Around,
  place: GroupPlace,
  described: Wanted<object>["described"],
): Promise<GroupStanding> {
  let found = await database.read(readGroup, place);
  if (found === undefined && described !== undefined) {
    const input = { ...place, ...described, now: () => clock.now() };
    await database.write(openGroup, input);
    found = await database.read(readGroup, place);
  }
  if (found === undefined) throw groupNotFound(place);
  if (described !== undefined) assertSameGroup(place, described, found);
  return found;
}

/** Records what has ended, timeouts included, and was not recorded by whoever ended it; false when there is nothing. */
async function recorded(
  { database, clock }: Around,
  place: GroupPlace,
  group: GroupStanding,
): Promise<boolean> {
  const tell = (): number => clock.now();
  const now = tell();
  const hasPlace = new Set(group.placed.map(({ ordinal }) => ordinal));
  let isNew = false;
  for (const [ordinal, member] of group.members.entries()) {
    const standing = group.standings[ordinal];
    if (standing === undefined || hasPlace.has(ordinal)) continue;
    if (standing.kind === "ended") isNew = true;
    else if (isOverdue({ state: "open", dueAt: standing.dueAt }, now)) {
      const event = { scope: place.scope, key: member.key };
      const ending = { ...event, end: "timedOut", now: tell } as const;
      await database.write(endAwaitEvent, ending);
      isNew = true;
    }
  }
  if (isNew) await database.write(settleGroup, place);
  return isNew;
}

function earliestDue(group: GroupStanding): number | undefined {
  const instants = group.standings.flatMap((member) =>
    member.kind === "open" && member.dueAt !== null ? member.dueAt : [],
  );
  return instants.length === 0 ? undefined : Math.min(...instants);
}
