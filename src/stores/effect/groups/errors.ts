import { groupDifference } from "../../../model/effect-group.ts";
import type { GroupKind, GroupMember } from "../../../model/effect-group.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { excerpt } from "../../../model/excerpt.ts";
import type { GroupPlace } from "./group-row.ts";

interface Described {
  readonly kind: GroupKind;
  readonly members: readonly GroupMember[];
}

/** Lets only the same group pass. @throws HoldfastError `GROUP_CONFLICT` */
export function assertSameGroup(
  place: GroupPlace,
  given: Described,
  recorded: Described,
): void {
  const path = groupDifference(recorded, given);
  if (path === undefined) return;
  throw new HoldfastError(
    "GROUP_CONFLICT",
    `The ${groupTitle(place)} was recorded before and differs at ${path}; nothing was changed. ` +
      "Wait for the same members in the same order whenever the scope is run again, or use another key.",
    { ...namesOf(place), path },
  );
}

export function groupNotFound(place: GroupPlace): HoldfastError {
  return new HoldfastError(
    "GROUP_NOT_FOUND",
    `There is no ${groupTitle(place)}. Wait for it with race or all first.`,
    namesOf(place),
  );
}

/** Such as `group "first" of turn "t7"`. */
export function groupTitle({ scope, key }: GroupPlace): string {
  return `group ${excerpt(key)} of ${scope.kind} ${excerpt(scope.id)}`;
}

function namesOf({ scope, key }: GroupPlace): Readonly<Record<string, string>> {
  return { scopeKind: scope.kind, scope: scope.id, key };
}
