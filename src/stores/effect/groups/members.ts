import { unreachable } from "../../../model/errors.ts";
import type { AwaitEnd } from "../../../model/await-event.ts";
import type { AwaitEventId } from "../../../model/await-token.ts";
import type { GroupMember, MemberEnd } from "../../../model/effect-group.ts";
import type { Encoded } from "../../../model/encoded.ts";
import type { Tx } from "../../../sql/operation.ts";
import { awaitEventTable, eventAt } from "../await/event-row.ts";
import { settledAttempt } from "../effect-row.ts";
import type { GroupPlace } from "./group-row.ts";

/** Where a member of a group stands by its own record. */
export type MemberStanding =
  | {
      readonly kind: "open";
      /** When an await-event times out; null for never. */
      readonly dueAt: number | null;
      /** The id of an await-event, by which its end is announced. */
      readonly event: AwaitEventId | undefined;
    }
  | {
      readonly kind: "ended";
      readonly end: AwaitEnd;
      readonly at: number;
      readonly payload: Encoded | null;
      /** Of an effect: which one ended it. */
      readonly attempt: number | null;
      /** Its row, for errors. */
      readonly table: string;
      readonly row: string;
    };

/**
 * Reads where a member stands, and locks nothing. An effect that has its place
 * stands where the attempt left it that is recorded with that.
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

/** Of which nothing more is known. */
const openMember = { kind: "open", dueAt: null, event: undefined } as const;

function* eventStanding(
  session: number,
  place: GroupPlace,
): Tx<MemberStanding> {
  const event = yield* eventAt(session, place);
  if (event === undefined) return openMember;
  const { id, state, dueAt, settledAt, openedAt, payload } = event;
  return state === "open"
    ? { kind: "open", dueAt, event: id }
    : {
        kind: "ended",
        end: state,
        at: settledAt ?? openedAt,
        payload,
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
    payload: settled.value,
    attempt,
    table: "holdfast_effect",
    row: String(key),
  };
}

/** Its end as a group records it; undefined while it is open. */
export function endOf(
  ordinal: number,
  standing: MemberStanding,
): MemberEnd | undefined {
  if (standing.kind === "open") return undefined;
  const { end, at, attempt } = standing;
  return { ordinal, attempt, isSuccess: end === "resolved", at };
}
