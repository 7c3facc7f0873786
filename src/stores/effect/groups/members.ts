import type { AwaitEnd } from "../../../model/effect/await-event.ts";
import type { AwaitEventId } from "../../../model/effect/await-token.ts";
import {
  attemptsOf,
  groupInvalid,
  groupMembersMax,
  type GroupMember,
  type MemberEnd,
} from "../../../model/effect/group.ts";
import { unreachable } from "../../../model/errors.ts";
import type { Tx } from "../../../sql/operation.ts";
import type { StoredAnswer } from "../await/context.ts";
import { awaitEventTable, eventAt } from "../await/event-row.ts";
import { settledAttempt } from "../effect-row.ts";
import { isName } from "../scope.ts";
import type { GroupPlace } from "./group-row.ts";

/** A member as callers name it: the key of an effect or an await-event in the group's scope. */
export type GroupMemberDraft =
  | {
      readonly effect: string;
      /**
       * The number of attempts that its `retry` allows, including the first; defaults to 1. A
       * transient failure before the last attempt is not the end. Attempts after the end change
       * nothing.
       */
      readonly attempts?: number;
    }
  | { readonly awaitEvent: string };

const keyCharactersMax = 512;
const attemptsMax = 1_001;

/** @throws HoldfastError `GROUP_INVALID`, naming the member */
export function checkedMembers(drafts: readonly GroupMemberDraft[]): readonly GroupMember[] {
  const given: unknown = drafts;
  if (!Array.isArray(given)) throw groupInvalid("members", "is not a list");
  if (given.length < 1 || given.length > groupMembersMax)
    throw groupInvalid("members", `has ${given.length} members`);
  const seen = new Set<string>();
  return given.map((draft: unknown, ordinal) => {
    const path = `members[${ordinal}]`;
    const member = checkedMember(path, draft);
    const name = JSON.stringify([member.kind, member.key]);
    if (seen.has(name)) throw groupInvalid(path, "is named twice");
    seen.add(name);
    return member;
  });
}

function checkedMember(path: string, draft: unknown): GroupMember {
  const { effect, awaitEvent, attempts, ...others } = Object(draft) as Readonly<
    Record<string, unknown>
  >;
  const key = effect ?? awaitEvent;
  const isOne = (effect === undefined) !== (awaitEvent === undefined);
  const isKnown =
    Object.keys(others).length === 0 && (effect !== undefined || attempts === undefined);
  if (!isOne || !isKnown || !isName(key, keyCharactersMax))
    throw groupInvalid(
      path,
      `is neither { effect, attempts } nor { awaitEvent } with a key of 1 to ${keyCharactersMax} characters that is not blank`,
    );
  if (effect === undefined) return { kind: "awaitEvent", key };
  return {
    kind: "effect",
    key,
    attempts: checkedAttempts(`${path}.attempts`, attempts),
  };
}

function checkedAttempts(path: string, attempts: unknown = 1): number {
  if (
    typeof attempts === "number" &&
    Number.isSafeInteger(attempts) &&
    attempts >= 1 &&
    attempts <= attemptsMax
  )
    return attempts;
  throw groupInvalid(path, `is not a whole number from 1 to ${attemptsMax}`);
}

/** The member as the caller named it. */
export function memberDraft(member: GroupMember): GroupMemberDraft {
  if (member.kind === "awaitEvent") return { awaitEvent: member.key };
  const attempts = attemptsOf(member);
  return { effect: member.key, ...(attempts !== 1 && { attempts }) };
}

/** The state of a group's member by its own record. */
export type MemberStanding =
  | {
      readonly kind: "open";
      /** The time at which an await-event times out; null for never. */
      readonly dueAt: number | null;
      /** The id of an await-event, which announces its end. */
      readonly event: AwaitEventId | undefined;
    }
  | {
      readonly kind: "ended";
      readonly end: AwaitEnd;
      readonly at: number;
      readonly answer: StoredAnswer | null;
      /** The attempt that ended an effect; null for an await-event. */
      readonly attempt: number | null;
      /** The table of its row, for errors. */
      readonly table: string;
      readonly row: string;
    };

/**
 * Reads the state of a member, and locks nothing. An effect that has its place is read at the
 * attempt recorded with that place.
 *
 * @throws HoldfastError `CORRUPT_ROW`
 */
export function* standingOf(
  session: number,
  scope: GroupPlace["scope"],
  member: GroupMember,
  recorded: number | null,
): Tx<MemberStanding> {
  switch (member.kind) {
    case "awaitEvent":
      return yield* eventStanding(session, { scope, key: member.key });
    case "effect":
      return yield* effectStanding(session, scope, member, recorded);
    default:
      return unreachable(member);
  }
}

/** A member with no recorded end, due time or id. */
const openMember = { kind: "open", dueAt: null, event: undefined } as const;

function* eventStanding(session: number, place: GroupPlace): Tx<MemberStanding> {
  const event = yield* eventAt(session, place);
  if (event === undefined) return openMember;
  const { id, state, dueAt, settledAt, openedAt, payload, hash } = event;
  return state === "open"
    ? { kind: "open", dueAt, event: id }
    : {
        kind: "ended",
        end: state,
        at: settledAt ?? openedAt,
        answer: payload === null ? null : { text: payload, hash },
        attempt: null,
        table: awaitEventTable,
        row: id,
      };
}

function* effectStanding(
  session: number,
  scope: GroupPlace["scope"],
  { key: replayKey, attempts }: Extract<GroupMember, { kind: "effect" }>,
  recorded: number | null,
): Tx<MemberStanding> {
  const which = recorded === null ? { retriedBelow: attempts } : { recorded };
  const settled = yield* settledAttempt(session, { scope, replayKey }, which);
  if (settled === undefined) return openMember;
  const { key, attempt } = settled;
  return {
    kind: "ended",
    end: settled.status === "completed" ? "resolved" : "failed",
    at: settled.settledAt,
    answer: settled.value,
    attempt,
    table: "holdfast_effect",
    row: String(key),
  };
}

/** The end of a member as a group records it; undefined while the member is open. */
export function endOf(ordinal: number, standing: MemberStanding): MemberEnd | undefined {
  if (standing.kind === "open") return undefined;
  const { end, at, attempt } = standing;
  return { ordinal, attempt, isSuccess: end === "resolved", at };
}
