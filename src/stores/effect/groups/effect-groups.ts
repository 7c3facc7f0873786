import type { AwaitOutcome } from "../../../model/await-event.ts";
import { decideGroup } from "../../../model/effect-group.ts";
import type { GroupKind } from "../../../model/effect-group.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import { optionsOf } from "../../../model/shape.ts";
import { awaitSurroundings, readEnd } from "../await/context.ts";
import type { AwaitSurroundings } from "../await/context.ts";
import { placeIn } from "../await/place.ts";
import { sessionOrNone } from "../scope.ts";
import type { Database, WaitOptions } from "../../../sql/database.ts";
import type { EffectScope } from "../scope.ts";
import type { StoreEnvironment } from "../../execution/context.ts";
import { keyPlace, nextCursor } from "../../cursor.ts";
import type { SessionName } from "../../session/session-name.ts";
import { givenDatabase } from "../../given.ts";
import { checkedLimit, pageNames } from "../../paging.ts";
import type { Page, PageOptions } from "../../list.ts";
import { checkedMembers, draftOf } from "./checks.ts";
import type { GroupMemberDraft } from "./checks.ts";
import { groupTable } from "./group-row.ts";
import type { GroupRecord } from "./group-row.ts";
import { listGroups } from "./read.ts";
import type { GroupStanding } from "./read.ts";
import { waitForGroup } from "./wait.ts";

/** What came of a member: what an effect returned or threw, or how an await-event ended. */
export type GroupMemberOutcome =
  AwaitOutcome<unknown, Error> | { readonly kind: "revoked" };

/** A member that has ended. */
export interface EndedGroupMember {
  /** Its place among the members as they were named, from 0 on. */
  readonly ordinal: number;
  readonly member: GroupMemberDraft;
  readonly outcome: GroupMemberOutcome;
}

export type GroupAllAnswer =
  /** What each has come to, as they were named, and the order in which they ended. */
  | {
      readonly kind: "all";
      readonly values: readonly unknown[];
      readonly order: readonly number[];
    }
  /** The first that did not succeed. */
  | ({ readonly kind: "failed" } & EndedGroupMember);

/** What may be known of a group. */
export interface EffectGroup {
  readonly scope: { readonly kind: string; readonly id: string };
  readonly key: string;
  readonly kind: GroupKind;
  readonly openedAt: number;
  readonly members: readonly GroupMemberDraft[];
  /** The members that are recorded to have ended, in that order. */
  readonly order: readonly number[];
}

/** Waiting for several effects and await-events of one scope, with an answer that stays. */
export interface EffectGroups {
  /**
   * The member that ended first, whether it succeeded or not. Recorded with
   * the order of all others: a replay gets the same one, whatever is faster
   * then. The others are left alone: `drain` waits for them.
   * @throws HoldfastError `GROUP_INVALID`, `GROUP_CONFLICT`, `AWAIT_EVENT_NOT_FOUND`, `EFFECT_SCOPE_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `ABORTED`, `DEADLINE_EXCEEDED`
   * @example const first = await groups.race(turn, "first", [{ effect: "search" }, { awaitEvent: "approval" }]);
   */
  race(
    scope: EffectScope,
    key: string,
    members: readonly GroupMemberDraft[],
    wait?: WaitOptions,
  ): Promise<EndedGroupMember>;
  /** All of them, or as soon as it has ended the first that did not succeed. @throws HoldfastError those of `race` */
  all(
    scope: EffectScope,
    key: string,
    members: readonly GroupMemberDraft[],
    wait?: WaitOptions,
  ): Promise<GroupAllAnswer>;
  /** Resolves when every member has ended, also those that no longer matter, in the order in which they did. @throws HoldfastError `GROUP_NOT_FOUND`, and those of `race` */
  drain(
    scope: EffectScope,
    key: string,
    wait?: WaitOptions,
  ): Promise<readonly EndedGroupMember[]>;
  /** A page of those of a session (null: of scopes that belong to none), in the order in which they were opened. What cannot be read is named. @throws HoldfastError `CURSOR_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  list(
    session: SessionName | null,
    options?: PageOptions,
  ): Promise<Page<EffectGroup>>;
}

/**
 * Groups of effects and await-events. Holds nothing, so there may be any
 * number of these over one database.
 */
export function effectGroups(
  database: Database,
  environment?: StoreEnvironment,
): EffectGroups {
  const around = awaitSurroundings(
    givenDatabase(database),
    optionsOf(environment),
  );
  return {
    async race(scope, key, drafts, wait) {
      const members = checkedMembers(drafts);
      const described = { kind: "race", members } as const;
      const answer = (group: GroupStanding): EndedGroupMember | undefined => {
        const decision = decisionOf(group);
        return decision.kind === "one"
          ? endedMember(around, group, decision.ordinal)
          : undefined;
      };
      const place = placeIn(scope, key);
      return waitForGroup(around, place, { described, answer }, wait);
    },
    async all(scope, key, drafts, wait) {
      const members = checkedMembers(drafts);
      const described = { kind: "all", members } as const;
      const answer = (group: GroupStanding): GroupAllAnswer | undefined =>
        allAnswer(around, group);
      const place = placeIn(scope, key);
      return waitForGroup(around, place, { described, answer }, wait);
    },
    async drain(scope, key, wait) {
      const described = undefined;
      const answer = (
        group: GroupStanding,
      ): readonly EndedGroupMember[] | undefined =>
        group.placed.length === group.members.length
          ? orderOf(group).map((one) => endedMember(around, group, one))
          : undefined;
      const place = placeIn(scope, key);
      return waitForGroup(around, place, { described, answer }, wait);
    },
    async list(given, options) {
      const known = optionsOf(options, pageNames);
      const { after, limit, signal, timeout } = known;
      const session = sessionOrNone(given);
      const owner = `groups:${JSON.stringify(session?.id ?? null)}`;
      const input = {
        session,
        after: after === undefined ? 0 : keyPlace(owner, after),
        limit: checkedLimit(limit),
      };
      const wait = { signal, timeout };
      const page = await database.read(listGroups, input, wait);
      const { items, damaged, next } = page;
      return {
        items: items.map(viewOf),
        damaged,
        next: nextCursor(owner, next),
      };
    },
  };
}

function decisionOf({
  kind,
  members,
  placed,
}: GroupRecord): ReturnType<typeof decideGroup> {
  return decideGroup(kind, members.length, placed);
}

function orderOf({ placed }: GroupRecord): readonly number[] {
  return placed.map(({ ordinal }) => ordinal);
}

function allAnswer(
  around: AwaitSurroundings,
  group: GroupStanding,
): GroupAllAnswer | undefined {
  const decision = decisionOf(group);
  if (decision.kind === "undecided") return undefined;
  if (decision.kind === "one")
    return { kind: "failed", ...endedMember(around, group, decision.ordinal) };
  const values = group.members.map((_, ordinal) => {
    const { outcome } = endedMember(around, group, ordinal);
    if (outcome.kind === "resolved") return outcome.value;
    throw contradicted(group);
  });
  return { kind: "all", values, order: orderOf(group) };
}

/** @throws HoldfastError `CORRUPT_ROW` when its record is gone that the group's follows from */
function endedMember(
  { codec }: AwaitSurroundings,
  group: GroupStanding,
  ordinal: number,
): EndedGroupMember {
  const [member, standing] = [group.members[ordinal], group.standings[ordinal]];
  if (member === undefined || standing?.kind !== "ended")
    throw contradicted(group);
  const outcome = readEnd(codec, standing) ?? { kind: "revoked" };
  return { ordinal, member: draftOf(member), outcome };
}

function contradicted({ rowKey }: GroupRecord): Error {
  return corruptRow(
    groupTable,
    rowKey,
    "records the end of a member that has not ended",
  );
}

function viewOf(group: GroupRecord): EffectGroup {
  const { scope, key, kind, openedAt, members } = group;
  const order = orderOf(group);
  return { scope, key, kind, openedAt, members: members.map(draftOf), order };
}
