import { HoldfastError, unreachable } from "../errors.ts";

/** What a group waits for: its first member to end, or all of them. */
export type GroupKind = "race" | "all";

/** One of those that are waited for together, all of one scope. */
export type GroupMember =
  | {
      readonly kind: "effect";
      readonly key: string;
      /** As many as may be made; a transient failure before the last is not the end. */
      readonly attempts: number;
    }
  | { readonly kind: "awaitEvent"; readonly key: string };

/** Where a member stands: its own record, not the group's. */
export interface MemberEnd {
  readonly ordinal: number;
  /** The attempt at an effect that was the last to count; null for an await-event. */
  readonly attempt: number | null;
  readonly isSuccess: boolean;
  readonly at: number;
}

/** A member that has ended, with its number in the order in which they did. */
export interface MemberPlace extends MemberEnd {
  /** From 1 on, without gaps. */
  readonly place: number;
}

/**
 * Puts members that have ended behind those that have their places already.
 * What ended first comes first; at the same instant, what was named first.
 */
export function nextPlaces(taken: number, ended: readonly MemberEnd[]): readonly MemberPlace[] {
  return ended
    .toSorted((a, b) => a.at - b.at || a.ordinal - b.ordinal)
    .map((end, index) => ({ ...end, place: taken + index + 1 }));
}

/** The outcome of a group so far. */
export type GroupDecision =
  | { readonly kind: "undecided" }
  /** Of a race: this member was the first. Of all: it was the first that did not succeed. */
  | { readonly kind: "one"; readonly ordinal: number }
  /** All have succeeded. */
  | { readonly kind: "all" };

/** Decides a group by the recorded order alone: whatever its members do later does not matter. */
export function decideGroup(
  kind: GroupKind,
  size: number,
  placed: readonly MemberPlace[],
): GroupDecision {
  const inOrder = placed.toSorted((a, b) => a.place - b.place);
  switch (kind) {
    case "race": {
      const [first] = inOrder;
      return first === undefined ? { kind: "undecided" } : { kind: "one", ordinal: first.ordinal };
    }
    case "all": {
      const failed = inOrder.find(({ isSuccess }) => !isSuccess);
      if (failed !== undefined) return { kind: "one", ordinal: failed.ordinal };
      return { kind: inOrder.length === size ? "all" : "undecided" };
    }
    default:
      return unreachable(kind);
  }
}

/** Where two descriptions of a group differ; undefined when they do not. */
export function groupDifference(
  recorded: {
    readonly kind: GroupKind;
    readonly members: readonly GroupMember[];
  },
  given: {
    readonly kind: GroupKind;
    readonly members: readonly GroupMember[];
  },
): string | undefined {
  if (recorded.kind !== given.kind) return "kind";
  const length = Math.max(recorded.members.length, given.members.length);
  for (let ordinal = 0; ordinal < length; ordinal += 1) {
    const [own, other] = [recorded.members[ordinal], given.members[ordinal]];
    if (own?.kind !== other?.kind || own?.key !== other?.key) return `members[${ordinal}]`;
    if (attemptsOf(own) !== attemptsOf(other)) return `members[${ordinal}].attempts`;
  }
  return undefined;
}

export function attemptsOf(member: GroupMember | undefined): number {
  return member?.kind === "effect" ? member.attempts : 1;
}

export function groupInvalid(path: string, what: string): HoldfastError {
  return new HoldfastError(
    "GROUP_INVALID",
    `${path} ${what}. Nothing was changed. Name 1 to ${groupMembersMax} members of the scope, each once: { effect: "key" } or { awaitEvent: "key" }.`,
    { path },
  );
}

/** Each is asked about with every look. */
export const groupMembersMax = 100;
