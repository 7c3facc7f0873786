import type { Contradiction } from "../../../model/execution/contradiction.ts";
import { lastHolder } from "../../../model/execution/state.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { OwnerId } from "../../../model/ids/prefixed-id.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import type { Liveness } from "../../../sql/database.ts";
import { lockRow } from "../../../sql/dialect.ts";
import { announce, row, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { StoreContext } from "../../context.ts";
import { unlessUnreadable } from "../../damage.ts";
import { isPresent, pendingValuesOf, recordOf, type PendingValues } from "../state-row.ts";
import { announceState } from "../log/respond.ts";
import { executionEnded, placeFreed } from "../topics.ts";
import type { Suspicious } from "./contradictions.ts";
import { readStories } from "./read-story.ts";
import { reasonOf, sizeOf, standingRowColumns, type Judgement, type StandingRow } from "./story.ts";

/**
 * Sets the row of an execution to the state that its log records, under the lock of the row. The
 * log is folded again there, since both may have changed. A lease is never granted or moved. It is
 * removed if the log shows that nobody can hold it, and taken from the log only for a lock that the
 * row has lost.
 */

type RepairOutcome =
  /** Its row contradicts its log, and can be repaired; nothing was changed. */
  | "repairable"
  | "repaired"
  /** A process that is or may be alive holds it. */
  | "held"
  /** Its log is damaged, has been pruned in the meantime, or ends elsewhere than its row says. */
  | "logDamaged"
  /** Its log has more events than one transaction reads. */
  | "tooLong"
  /** Its row agrees with its log by now, or it has been removed. */
  | "agrees";

export interface RepairedRun {
  readonly id: string;
  readonly outcome: RepairOutcome;
  /** A sentence without values. */
  readonly reason: string;
}

/** The limit of one transaction, so that others do not wait long. */
const sizeMax = 100_000;

interface RepairState {
  readonly id: ExecutionId;
  readonly key: number;
  readonly at: number;
  /** The holder that its log recorded when it was read. */
  readonly owner: OwnerId | null;
  readonly liveness: Liveness;
}

type Repaired = Omit<RepairedRun, "id">;

const tooLong: Repaired = {
  outcome: "tooLong",
  reason: `Its log has more than ${sizeMax} entries since it was last started.`,
};
const gone: Repaired = { outcome: "agrees", reason: "It is gone." };

const repairState = storeOperation("repairState", {
  key: (input) => input.id,
  *one({ clock }: StoreContext, input: RepairState): Tx<Repaired> {
    const found = yield* row<StandingRow>(sql`
      SELECT ${standingRowColumns} FROM holdfast_execution
      WHERE id = ${input.id} AND key = ${input.key} AND ${isPresent(input.id)} ${lockRow}`);
    if (found === undefined) return gone;
    if (sizeOf(found) > sizeMax) return tooLong;
    const judgement = yield* judgedNow(found);
    if (judgement.kind === "agrees") return { outcome: "agrees", reason: "It agrees by now." };
    if (judgement.kind === "unreadable") return { outcome: "logDamaged", reason: judgement.reason };
    const { contradiction } = judgement;
    const reason = reasonOf(contradiction, found);
    const at = Math.max(input.at, clock.now());
    const isKnown = ownerOf(contradiction) === input.owner;
    if (!isKnown || isHeld(contradiction, found, input.liveness, at))
      return { outcome: "held", reason };
    yield* write(found, contradiction);
    if ((yield* judgedNow(yield* written(found))).kind !== "agrees")
      throw corruptRow("holdfast_execution", found.id, "cannot be made what its log says");
    return { outcome: "repaired", reason };
  },
});

function* judgedNow(found: StandingRow): Tx<Judgement> {
  const stories = yield* readStories([found]);
  return (
    stories.get(found.key)?.judged(found) ?? {
      kind: "unreadable",
      reason: "Its log cannot be read.",
      isStart: false,
    }
  );
}

function* written({ key, id }: StandingRow): Tx<StandingRow> {
  const found = yield* row<StandingRow>(sql`
    SELECT ${standingRowColumns} FROM holdfast_execution WHERE key = ${key}`);
  if (found === undefined) throw corruptRow("holdfast_execution", id, "is gone");
  return found;
}

/** The last holder, as the log records. */
function ownerOf({ pending }: Contradiction): OwnerId | null {
  return lastHolder(pending)?.owner ?? null;
}

/**
 * True if a process may be running it, or keeping it in memory: an owner keeps its lease until its
 * death is proven.
 */
function isHeld(
  { pending, mayBeKept }: Contradiction,
  found: StandingRow,
  liveness: Liveness,
  at: number,
): boolean {
  if (!mayBeKept || liveness === "dead") return false;
  const isLocked = pending.kind === "locked";
  if (isLocked && liveness === "alive") return true;
  const until = found.lease_until ?? (isLocked ? pending.leaseUntil : null);
  return until !== null && until > at;
}

/**
 * Writes the columns of the status and those that depend on it. The version and the counts stay.
 */
function* write(found: StandingRow, contradiction: Contradiction): Tx<void> {
  const { pending, lifecycle, deadline } = contradiction;
  const to: PendingValues = {
    ...pendingValuesOf(pending),
    lease_until: leaseOf(found, contradiction),
  };
  yield* run(sql`
    UPDATE holdfast_execution SET
      state = ${to.state}, lifecycle = ${lifecycle}, due_at = ${to.due_at}, lease_until = ${to.lease_until},
      finished_at = ${to.finished_at}, result_kind = ${to.result_kind}, lock_version = ${to.lock_version},
      executor = ${to.executor}, run = ${to.run}, owner = ${to.owner}, inbox = ${to.inbox},
      ordinal = ${to.ordinal}, is_closing = ${to.is_closing}, seen = ${to.seen}, wake_at = ${to.wake_at},
      deadline_at = ${deadline}
    WHERE key = ${found.key}`);
  const { id, function: name, state } = recordOf(yield* written(found));
  yield* announceState({ id, function: name }, state);
  if (state.pending.kind === "finished") yield* announce(executionEnded, id);
  if (found.state === "locked" && state.pending.kind !== "locked")
    yield* announce(placeFreed, name);
}

function leaseOf(
  { lease_until: stored }: StandingRow,
  { pending, mayBeKept }: Contradiction,
): number | null {
  if (!mayBeKept || pending.kind === "finished") return null;
  return pending.kind === "locked" ? (stored ?? pending.leaseUntil) : stored;
}

/**
 * Repairs one execution that a walk has found, or reports why it cannot. Without `isApplied` it
 * only reports.
 */
export async function repairExecution(
  context: StoreContext,
  { id, row: found, judgement, reason }: Suspicious,
  { isApplied, signal }: { readonly isApplied: boolean; readonly signal?: AbortSignal | undefined },
): Promise<RepairedRun> {
  if (judgement.kind === "unreadable" || found === undefined)
    return { id, outcome: "logDamaged", reason };
  const { database, clock } = context;
  const { contradiction } = judgement;
  const owner = ownerOf(contradiction);
  const liveness = owner === null ? "unknown" : await database.liveness(owner);
  const at = clock.now();
  if (!isApplied) {
    if (sizeOf(found) > sizeMax) return { id, ...tooLong };
    const isLeft = isHeld(contradiction, found, liveness, at);
    return { id, outcome: isLeft ? "held" : "repairable", reason };
  }
  const input = { id, key: found.key, at, owner, liveness };
  const repaired = await unlessUnreadable(database.write(repairState(context), input, { signal }));
  return repaired instanceof Error
    ? { id, outcome: "logDamaged", reason: repaired.message }
    : { id, ...repaired };
}
