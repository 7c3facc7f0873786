import { HoldfastError, unreachable } from "../errors.ts";

/** The goal of a group: its first member ends, or all of them end. */
export type GroupKind = "race" | "all";

/** One member of a group. All members share a scope. */
export type GroupMember =
  | {
      readonly kind: "effect";
      readonly key: string;
      /** The maximum number of attempts. A transient failure before the last one is not the end. */
      readonly attempts: number;
    }
  | { readonly kind: "awaitEvent"; readonly key: string };

/** The end of a member, from its own record and not the group's. */
export interface MemberEnd {
  readonly ordinal: number;
  /** The last attempt that counted for an effect; null for an await-event. */
  readonly attempt: number | null;
  readonly isSuccess: boolean;
  readonly at: number;
}

/** An ended member, with its number in the order of ending. */
export interface MemberPlace extends MemberEnd {
  /** Counted from 1 without gaps. */
  readonly place: number;
}

/**
 * Places newly ended members behind those that already have places. They are ordered by the instant
 * of ending, and at the same instant by their order in the group.
 */
export function nextPlaces(taken: number, ended: readonly MemberEnd[]): readonly MemberPlace[] {
  return ended
    .toSorted((a, b) => a.at - b.at || a.ordinal - b.ordinal)
    .map((end, index) => ({ ...end, place: taken + index + 1 }));
}

/** The outcome of a group so far. */
export type GroupDecision =
  | { readonly kind: "undecided" }
  /** For a race, the first member to end. For all, the first member that did not succeed. */
  | { readonly kind: "one"; readonly ordinal: number }
  /** All members have succeeded. */
  | { readonly kind: "all" };

/** Decides a group by the recorded order only. Later changes of its members do not matter. */
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

/** Returns the first difference of two descriptions of a group; undefined when equal. */
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

/** The limit of members, since every look at a group reads each of them. */
export const groupMembersMax = 100;
