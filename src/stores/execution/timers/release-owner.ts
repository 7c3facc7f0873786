import {
  deathsMax,
  decideOwnerDeath,
} from "../../../model/execution-decisions.ts";
import type { ExecutionEvent } from "../../../model/execution-event.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import type { ExecutionState } from "../../../model/execution-state.ts";
import { lastHolder } from "../../../model/execution-state.ts";
import { isHeld } from "../../../model/execution-transition.ts";
import type { OwnerId } from "../../../model/prefixed-id.ts";
import { row, rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { appendTo } from "../log/append-to.ts";
import type { Endings } from "../context.ts";
import { lockedRecord } from "../state-row.ts";

/** A place among what a process holds. */
export interface HeldPlace {
  readonly leaseUntil: number;
  readonly key: number;
}

export interface HeldBy {
  readonly owner: OwnerId;
  readonly at: number;
  readonly limit: number;
  /** The `next` of the page before. */
  readonly after?: HeldPlace | undefined;
}

export interface Held {
  readonly ids: readonly ExecutionId[];
  /** Where to go on, when there may be more. */
  readonly next: HeldPlace | undefined;
}

/** A page of the executions that a process holds: locked by it, or kept in its memory while they wait. */
export const heldBy: Operation<HeldBy, Held> = plainOperation("heldBy", {
  key: (input: HeldBy) => input.owner,
  *one({ owner, at, limit, after }) {
    const { leaseUntil, key } = after ?? { leaseUntil: 0, key: 0 };
    const found = yield* rows<{
      readonly id: ExecutionId;
      readonly key: number;
      readonly lease_until: number;
    }>(sql`
      SELECT id, key, lease_until FROM holdfast_execution
      WHERE owner = ${owner} AND lease_until IS NOT NULL AND (state = 'locked' OR lease_until > ${at})
        AND lease_until >= ${leaseUntil} AND (lease_until > ${leaseUntil} OR key > ${key})
      ORDER BY lease_until, key LIMIT ${limit}`);
    const last = found.at(-1);
    return {
      ids: found.map(({ id }) => id),
      next:
        last === undefined || found.length < limit
          ? undefined
          : { leaseUntil: last.lease_until, key: last.key },
    };
  },
});

/** The processes that hold executions, one after the other. */
export const nextHolder: Operation<
  { readonly after: string },
  OwnerId | undefined
> = plainOperation("nextHolder", {
  key: (input: { readonly after: string }) => input.after,
  *one({ after }) {
    const found = yield* row<{ readonly owner: OwnerId }>(sql`
      SELECT owner FROM holdfast_execution
      WHERE lease_until IS NOT NULL AND owner > ${after} ORDER BY owner LIMIT 1`);
    return found?.owner;
  },
});

export interface ReleaseDead {
  readonly id: ExecutionId;
  readonly owner: OwnerId;
  readonly at: number;
  /** A number below 1, for spreading retries. */
  readonly random: number;
  readonly endings: Endings;
}

/**
 * Takes an execution from a process that has provably died, if it still holds
 * it. Repeating it does nothing.
 */
export const releaseDead: Operation<ReleaseDead, "released" | "notHeld"> =
  plainOperation("releaseDead", {
    key: (input: ReleaseDead) => input.id,
    *one({ id, owner, at, random, endings }) {
      const record = yield* lockedRecord(id);
      const { state } = record;
      if (
        lastHolder(state.pending)?.owner !== owner ||
        !isHeld(state.pending, at)
      )
        return "notHeld";
      yield* appendTo(
        record,
        at,
        eventsOfDeath(state, owner, at, random, endings),
      );
      return "released";
    },
  });

function eventsOfDeath(
  state: ExecutionState,
  owner: OwnerId,
  at: number,
  random: number,
  endings: Endings,
): readonly ExecutionEvent[] {
  const decision = decideOwnerDeath(state, at, random);
  switch (decision.kind) {
    case "resume":
      return [
        {
          kind: "ownerDied",
          owner,
          dueAt: decision.dueAt,
          counts: decision.counts,
        },
      ];
    case "park":
      return [
        { kind: "ownerDied", owner, dueAt: at, counts: "death" },
        {
          kind: "parked",
          code: "RUN_KEEPS_KILLING_WORKERS",
          reason: `${deathsMax} processes died in a row while they ran it, without progress in between.`,
          codeVersion: state.codeVersion,
        },
      ];
    default:
      return [
        decision.resultKind === "failed"
          ? endings.ownerDied
          : endings.cancelled,
      ];
  }
}
