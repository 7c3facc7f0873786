import { rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { aggregateOf } from "../await/event-row.ts";
import type { StoredPage } from "../await/read.ts";
import { isDamage } from "../../damage.ts";
import type { Damaged } from "../../damage.ts";
import { livingKeyOf } from "../await/session-key.ts";
import type { SessionRef } from "../../session/session-row.ts";
import {
  groupColumns,
  groupRowAt,
  groupTable,
  withMembers,
} from "./group-row.ts";
import type { GroupPlace, GroupRecord, GroupRow } from "./group-row.ts";
import { standingOf } from "./members.ts";
import type { MemberStanding } from "./members.ts";

/** A group, and where each of its members stands: an effect that has its place by the attempt that gave it. */
export interface GroupStanding extends GroupRecord {
  readonly standings: readonly MemberStanding[];
}

/**
 * A group with where its members stand now.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` or `CORRUPT_ROW`.
 */
export const readGroup: Operation<GroupPlace, GroupStanding | undefined> =
  plainOperation("readGroup", {
    key: (input: GroupPlace) => aggregateOf(input),
    *one(input) {
      const session = yield* livingKeyOf(input.scope);
      const found = yield* groupRowAt(session, input);
      if (found === undefined) return undefined;
      const group = yield* withMembers(found);
      const standings: MemberStanding[] = [];
      for (const [ordinal, member] of group.members.entries()) {
        const ended = group.placed.find((place) => place.ordinal === ordinal);
        const attempt = ended?.attempt ?? null;
        standings.push(
          yield* standingOf(session, input.scope, member, attempt),
        );
      }
      return { ...group, standings };
    },
  });

export interface ListGroups {
  /** Undefined for those whose scopes belong to none. */
  readonly session: SessionRef | undefined;
  readonly after: number;
  readonly limit: number;
}

/**
 * A page of a session's groups in the order in which they were opened.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const listGroups: Operation<
  ListGroups,
  StoredPage<GroupRecord>
> = plainOperation("listGroups", {
  key: (input: ListGroups) => input.session?.id ?? "",
  *one({ after, limit, ...given }) {
    const session = yield* livingKeyOf(given);
    const found = yield* rows<GroupRow>(sql`
      SELECT ${groupColumns} FROM holdfast_effect_group
      WHERE session = ${session} AND key > ${after} ORDER BY key LIMIT ${limit + 1}`);
    const page = found.slice(0, limit);
    const items: GroupRecord[] = [];
    const damaged: Damaged[] = [];
    for (const group of page) {
      const read = yield* unlessDamaged(group);
      if (read === undefined)
        damaged.push({ table: groupTable, key: String(group.key) });
      else items.push(read);
    }
    const next = found.length > limit ? page.at(-1)?.key : undefined;
    return { items, damaged, next };
  },
});

function* unlessDamaged(group: GroupRow): Tx<GroupRecord | undefined> {
  try {
    return yield* withMembers(group);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return undefined;
  }
}
