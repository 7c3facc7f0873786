import type { AwaitOutcome } from "../../../model/effect/await-event.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import { decideGroup, type GroupKind } from "../../../model/effect/group.ts";
import type { Database, WaitOptions } from "../../../sql/database.ts";
import type { StoreOptions } from "../../context.ts";
import { lists, type Page, type PageOptions } from "../../list.ts";
import { onlyWait, writes, type Method } from "../../method.ts";
import type { SessionName } from "../../session-name.ts";
import { awaitContext, readEnd, type AwaitContext } from "../await/context.ts";
import { checkedPlace, type EffectScope } from "../scope.ts";
import { groupTable, type GroupRecord } from "./group-row.ts";
import { checkedMembers, memberDraft, type GroupMemberDraft } from "./members.ts";
import { givenOpen, openGroup } from "./open.ts";
import { groupList, type EffectGroup, type GroupStanding } from "./read.ts";
import { waitForGroup } from "./wait.ts";

/** The outcome of a member: the result or error of an effect, or the end of an await-event. */
type GroupMemberOutcome = AwaitOutcome<unknown, Error> | { readonly kind: "revoked" };

/** A member that has ended. */
export interface EndedGroupMember {
  /** The index of the member in the group's list, from 0. */
  readonly ordinal: number;
  readonly member: GroupMemberDraft;
  readonly outcome: GroupMemberOutcome;
}

export type GroupAllAnswer =
  /** The values in the order of the group's list, and the order in which the members ended. */
  | {
      readonly kind: "all";
      readonly values: readonly unknown[];
      readonly order: readonly number[];
    }
  /** The first member that did not succeed. */
  | ({ readonly kind: "failed" } & EndedGroupMember);

/** Groups of effects and await-events in one scope, with an answer that never changes. */
export interface EffectGroups {
  /**
   * Records the members of a group, without waiting; `race` and `all` do this themselves. Prepared,
   * it opens a group in the transaction that opens its await-events. That transaction is
   * `readCommitted`.
   *
   * @throws HoldfastError `GROUP_INVALID`, `GROUP_CONFLICT`, `AWAIT_EVENT_NOT_FOUND`,
   *   `EFFECT_SCOPE_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly open: Method<
    [
      scope: EffectScope,
      key: string,
      kind: GroupKind,
      members: readonly GroupMemberDraft[],
      wait?: WaitOptions,
    ],
    { readonly existed: boolean }
  >;
  /**
   * Resolves with the member that ended first, successful or not. Its place is recorded together
   * with the order of all other ended members. A replay gets the same member, even if another one
   * is faster then. The other members keep running; `drain` waits for them.
   *
   * @throws HoldfastError `GROUP_INVALID`, `GROUP_CONFLICT`, `AWAIT_EVENT_NOT_FOUND`,
   *   `EFFECT_SCOPE_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `ABORTED`,
   *   `DEADLINE_EXCEEDED`
   * @example const first = await groups.race(turn, "first", [{ effect: "search" }, { awaitEvent: "approval" }]);
   */
  race(
    scope: EffectScope,
    key: string,
    members: readonly GroupMemberDraft[],
    wait?: WaitOptions,
  ): Promise<EndedGroupMember>;
  /**
   * Resolves with all values, or with the first member that did not succeed, as soon as it has
   * ended.
   *
   * @throws HoldfastError those of `race`
   */
  all(
    scope: EffectScope,
    key: string,
    members: readonly GroupMemberDraft[],
    wait?: WaitOptions,
  ): Promise<GroupAllAnswer>;
  /**
   * Resolves when every member has ended, including those that no longer matter for the answer. The
   * members are in the order in which they ended.
   *
   * @throws HoldfastError `GROUP_NOT_FOUND`, and those of `race`
   */
  drain(scope: EffectScope, key: string, wait?: WaitOptions): Promise<readonly EndedGroupMember[]>;
  /**
   * Lists the groups of a session in the order in which they were opened. With null, lists those of
   * scopes without a session.
   *
   * @throws HoldfastError `CURSOR_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly list: Method<[session: SessionName | null, options?: PageOptions], Page<EffectGroup>>;
}

/**
 * Groups of effects and await-events. The object holds nothing, so a database may have any number
 * of them.
 */
export function effectGroups(database: Database, options?: StoreOptions): EffectGroups {
  const context = awaitContext(database, options);
  return {
    open: writes(context, openGroup, givenOpen),
    async race(scope, key, drafts, wait) {
      const terms = { kind: "race", members: checkedMembers(drafts) } as const;
      const answer = (group: GroupStanding): EndedGroupMember | undefined =>
        raceAnswer(context, group);
      const awaited = { terms, answer };
      return waitForGroup(context, checkedPlace("group", scope, key), awaited, onlyWait(wait));
    },
    async all(scope, key, drafts, wait) {
      const terms = { kind: "all", members: checkedMembers(drafts) } as const;
      const answer = (group: GroupStanding): GroupAllAnswer | undefined =>
        allAnswer(context, group);
      const awaited = { terms, answer };
      return waitForGroup(context, checkedPlace("group", scope, key), awaited, onlyWait(wait));
    },
    async drain(scope, key, wait) {
      const answer = (group: GroupStanding): readonly EndedGroupMember[] | undefined =>
        drained(context, group);
      const awaited = { terms: undefined, answer };
      return waitForGroup(context, checkedPlace("group", scope, key), awaited, onlyWait(wait));
    },
    list: lists(context, groupList),
  };
}

function decisionOf({ kind, members, placed }: GroupRecord): ReturnType<typeof decideGroup> {
  return decideGroup(kind, members.length, placed);
}

function orderOf({ placed }: GroupRecord): readonly number[] {
  return placed.map(({ ordinal }) => ordinal);
}

function raceAnswer(context: AwaitContext, group: GroupStanding): EndedGroupMember | undefined {
  const decision = decisionOf(group);
  return decision.kind === "one" ? endedMember(context, group, decision.ordinal) : undefined;
}

function allAnswer(context: AwaitContext, group: GroupStanding): GroupAllAnswer | undefined {
  const decision = decisionOf(group);
  if (decision.kind === "undecided") return undefined;
  if (decision.kind === "one")
    return { kind: "failed", ...endedMember(context, group, decision.ordinal) };
  const values = group.members.map((_, ordinal) => {
    const { outcome } = endedMember(context, group, ordinal);
    if (outcome.kind === "resolved") return outcome.value;
    throw contradicted(group);
  });
  return { kind: "all", values, order: orderOf(group) };
}

function drained(
  context: AwaitContext,
  group: GroupStanding,
): readonly EndedGroupMember[] | undefined {
  return group.placed.length === group.members.length
    ? orderOf(group).map((ordinal) => endedMember(context, group, ordinal))
    : undefined;
}

/** @throws HoldfastError `CORRUPT_ROW` when the member's own record is missing */
function endedMember(
  context: AwaitContext,
  group: GroupStanding,
  ordinal: number,
): EndedGroupMember {
  const [member, standing] = [group.members[ordinal], group.standings[ordinal]];
  if (member === undefined || standing?.kind !== "ended") throw contradicted(group);
  const outcome = readEnd(context, standing) ?? { kind: "revoked" };
  return { ordinal, member: memberDraft(member), outcome };
}

function contradicted({ rowKey }: GroupRecord): Error {
  return corruptRow(groupTable, rowKey, "records the end of a member that has not ended");
}
