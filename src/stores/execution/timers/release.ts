import { decideOwnerDeath, type LossDecision } from "../../../model/execution/decisions.ts";
import type { ExecutionEvent } from "../../../model/execution/event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { lastHolder } from "../../../model/execution/state.ts";
import { isHeld } from "../../../model/execution/pending.ts";
import { parseOwnerId, type OwnerId } from "../../../model/ids/prefixed-id.ts";
import { row, rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Damaged } from "../../damage.ts";
import type { Endings, ExecutionContext } from "../context.ts";
import { appendTo, effectsOf } from "../log/append-to.ts";
import { lockedRecord } from "../state-row.ts";
import { convictedBy, convictions } from "./expire.ts";
import {
  addNote,
  noNotes,
  noteOf,
  type AttemptLost,
  type Convicted,
  type EndedWithoutCode,
  type Noted,
  type Notes,
  type Parked,
} from "./notes.ts";
import { unlessGone } from "./expire-timers.ts";
import { hasRecorded, whenPoisoned } from "./lost-lock.ts";

/**
 * Releases executions whose process has died. A `death` hint names the owner, or a starting worker
 * asks for all owners that hold executions. Only a proven death counts (`database.liveness`); other
 * owners keep their executions until their leases end. One index finds the owner's executions, a
 * page at a time, and each is released in a transaction of its own. `decideOwnerDeath` decides how
 * the death counts, and when the execution is due again.
 */

/** A position among the executions that a process holds. */
interface HeldPlace {
  readonly leaseUntil: number;
  readonly key: number;
}

export interface HeldBy {
  readonly owner: OwnerId;
  readonly at: number;
  readonly limit: number;
  /** The `next` of the previous page. */
  readonly after?: HeldPlace | undefined;
}

export interface Held {
  readonly ids: readonly ExecutionId[];
  /** The place to continue from, if there may be more. */
  readonly next: HeldPlace | undefined;
}

/**
 * A page of the executions that a process holds: locked by it, or kept in its memory while they
 * wait.
 */
export const heldBy = storeOperation("heldBy", {
  key: (input) => input.owner,
  *one(_: ExecutionContext, { owner, at, limit, after }: HeldBy): Tx<Held> {
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

/** The processes that hold executions, one by one. */
const nextHolder = storeOperation("nextHolder", {
  key: (input) => input.after,
  *one(_: ExecutionContext, { after }: { readonly after: string }): Tx<OwnerId | undefined> {
    const found = yield* row<{ readonly owner: OwnerId }>(sql`
      SELECT owner FROM holdfast_execution
      WHERE lease_until IS NOT NULL AND owner > ${after} ORDER BY owner LIMIT 1`);
    return found?.owner;
  },
});

export interface ReleaseExecution {
  readonly id: ExecutionId;
  readonly owner: OwnerId;
  readonly at: number;
  /** A number below 1, for spreading retries. */
  readonly random: number;
}

/**
 * Releases an execution from a process proven dead, if that process still holds it. May be
 * repeated.
 */
export const releaseExecution = storeOperation("releaseDead", {
  key: (input) => input.id,
  *one(
    context: ExecutionContext,
    { id, owner, at, random }: ReleaseExecution,
  ): Tx<Noted<"released" | "parked" | "cancelled" | "notHeld">> {
    const record = yield* lockedRecord(id);
    const { state } = record;
    if (lastHolder(state.pending)?.owner !== owner || !isHeld(state.pending, at))
      return { outcome: "notHeld" };
    const decision = decideOwnerDeath(state, {
      at,
      random,
      hasRecorded: yield* hasRecorded(record),
      whenPoisoned: yield* whenPoisoned(record),
    });
    const events = eventsOfDeath(decision, owner, at, context.endings);
    const effects = effectsOf({});
    yield* appendTo(context, record, at, events, effects);
    const outcome = convictedBy(decision) ?? "released";
    return { outcome, note: noteOf(record, events, effects) };
  },
});

function eventsOfDeath(
  decision: LossDecision,
  owner: OwnerId,
  at: number,
  endings: Endings,
): readonly ExecutionEvent[] {
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
    case "cancel":
      return [
        { kind: "ownerDied", owner, dueAt: at, counts: decision.counts },
        convictions[decision.kind],
      ];
    default:
      return [decision.resultKind === "cancelled" ? endings.cancelled : endings.ownerDied];
  }
}

export interface ReleaseReport {
  /** The number of executions released from dead processes. */
  readonly released: number;
  /** The released executions that have now lost one process too many. */
  readonly parked: readonly Parked[];
  /** The same, of functions whose runs are cancelled then (`whenPoisoned`). */
  readonly cancelled: readonly Convicted[];
  /** The released executions that have ended, since no retries were left. */
  readonly ended: readonly EndedWithoutCode[];
  /** Attempts of released activities, which are made again. */
  readonly attemptsLost: readonly AttemptLost[];
  /** Damaged executions of a dead process, which cannot be released until they are fixed. */
  readonly damaged: readonly Damaged[];
}

/**
 * Releases the executions of processes proven dead: of one process, or of all that hold executions.
 */
export async function releaseDead(
  context: ExecutionContext,
  owner?: OwnerId,
): Promise<ReleaseReport> {
  const report: Report = { released: 0, ...noNotes(), damaged: [] };
  if (owner !== undefined) {
    await releaseIfDead(context, parseOwnerId(owner), report);
    return report;
  }
  for (let after = ""; ;) {
    const holder = await context.database.read(nextHolder(context), { after });
    if (holder === undefined) return report;
    await releaseIfDead(context, holder, report);
    after = holder;
  }
}

/** A report that grows with each process. */
interface Report extends Notes {
  released: number;
  readonly damaged: Damaged[];
}

const heldPerPage = 100;

async function releaseIfDead(
  context: ExecutionContext,
  owner: OwnerId,
  report: Report,
): Promise<void> {
  const { database, clock, random } = context;
  if ((await database.liveness(owner)) !== "dead") return;
  let after: HeldPlace | undefined;
  do {
    const at = clock.now();
    const limit = heldPerPage;
    const page: Held = await database.read(heldBy(context), {
      owner,
      at,
      limit,
      after,
    });
    const outcomes = await Promise.all(
      page.ids.map((id) =>
        database
          .write(releaseExecution(context), { id, owner, at, random: random() })
          .catch((error: unknown) => unlessGone(error, { table: "holdfast_execution", key: id })),
      ),
    );
    for (const found of outcomes) {
      if (found === undefined) continue;
      if ("table" in found) report.damaged.push(found);
      else {
        if (found.outcome !== "notHeld") report.released += 1;
        if (found.note !== undefined) addNote(report, found.note);
      }
    }
    after = page.next;
  } while (after !== undefined);
}
