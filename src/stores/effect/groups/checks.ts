import {
  attemptsOf,
  groupInvalid,
  groupMembersMax,
} from "../../../model/effect-group.ts";
import type { GroupMember } from "../../../model/effect-group.ts";
import { isName } from "../scope.ts";

/** A member as callers name it: by the key of an effect or an await-event of the group's scope. */
export type GroupMemberDraft =
  | {
      readonly effect: string;
      /** How many attempts its `retry` allows, the first included: 1 unless told. A transient failure before the last is not the end; what is attempted after the end changes nothing. */
      readonly attempts?: number;
    }
  | { readonly awaitEvent: string };

const keyCharactersMax = 512;
const attemptsMax = 1_001;

/** @throws HoldfastError `GROUP_INVALID`, naming the member */
export function checkedMembers(
  drafts: readonly GroupMemberDraft[],
): readonly GroupMember[] {
  const given: unknown = drafts;
  if (!Array.isArray(given)) throw groupInvalid("members", "is no list");
  if (given.length < 1 || given.length > groupMembersMax)
    throw groupInvalid("members", `has ${given.length} members`);
  const seen = new Set<string>();
  return given.map((draft: unknown, ordinal) => {
    const path = `members[${ordinal}]`;
    const member = checkedMember(path, draft);
    const name = JSON.stringify([member.kind, member.key]);
    if (seen.has(name)) throw groupInvalid(path, "was named before");
    seen.add(name);
    return member;
  });
}

function checkedMember(path: string, draft: unknown): GroupMember {
  const { effect, awaitEvent, attempts } = Object(draft) as Readonly<
    Record<string, unknown>
  >;
  const key = effect ?? awaitEvent;
  const isOne = (effect === undefined) !== (awaitEvent === undefined);
  if (!isOne || !isName(key, keyCharactersMax))
    throw groupInvalid(
      path,
      `is neither { effect } nor { awaitEvent } with a key of 1 to ${keyCharactersMax} characters that is not blank`,
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
  throw groupInvalid(path, `is no whole number from 1 to ${attemptsMax}`);
}

/** The member as it was named. */
export function draftOf(member: GroupMember): GroupMemberDraft {
  if (member.kind === "awaitEvent") return { awaitEvent: member.key };
  const attempts = attemptsOf(member);
  return { effect: member.key, ...(attempts !== 1 && { attempts }) };
}
