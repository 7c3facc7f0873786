import { delayId } from "../../../src/model/ids/delay-id.ts";
import type { Created, Holder, LossCount } from "../../../src/model/execution/event.ts";
import { childId } from "../../../src/model/ids/execution-id.ts";
import type { ExecutionId } from "../../../src/model/ids/execution-id.ts";
import type { FunctionName } from "../../../src/model/ids/function-name.ts";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { namedJoinSet } from "../../../src/model/ids/join-set-id.ts";
import type { JoinSetId } from "../../../src/model/ids/join-set-id.ts";
import type { ExecutorId, OwnerId, RunId } from "../../../src/model/ids/prefixed-id.ts";
import type { RetryPolicy } from "../../../src/model/time/retry-policy.ts";
import type { ChildDraft } from "../../../src/stores/execution/log/children.ts";
import type { EventDraft } from "./steps.ts";

/** Two executors, each in one round of locking. */
export const workers: readonly Pick<Holder, "executor" | "run">[] = [
  {
    executor: "Exr_01ARZ3NDEKTSV4RRFFQ69G5FA1" as ExecutorId,
    run: "Run_01ARZ3NDEKTSV4RRFFQ69G5FA1" as RunId,
  },
  {
    executor: "Exr_01ARZ3NDEKTSV4RRFFQ69G5FA2" as ExecutorId,
    run: "Run_01ARZ3NDEKTSV4RRFFQ69G5FA2" as RunId,
  },
];

export const functions = ["shop/order", "shop/pay"] as const;
export const signals = ["approve", "reject"] as const;

export function setOf(number: number, continuations = 0): JoinSetId {
  return namedJoinSet(`set-${number}`, continuations);
}

/** Gives up soon, so that sequences get there. */
export const retry: RetryPolicy = {
  maxRetries: 2,
  backoffMs: 50,
  backoffMaxMs: 1_000,
};

/** Where a drafted event goes. */
export interface DraftPlace {
  readonly id: ExecutionId;
  /** How many it has. */
  readonly responses: number;
  /** How often it was started anew. */
  readonly continuations: number;
  readonly now: number;
  readonly owner: OwnerId;
  readonly worker: Pick<Holder, "executor" | "run">;
}

/** Only creating writes this, so an append of it fails, whatever is in it. */
const refused: Created<unknown> = {
  kind: "created",
  role: "workflow",
  function: functions[0] as FunctionName,
  input: null,
  inputHash: "0",
  scheduledAt: 0,
  deadlineAt: null,
  concurrencyKey: null,
  codeVersion: null,
  isPaused: false,
  scheduledBy: null,
  forkedFrom: null,
  metadata: {},
  tags: [],
};

/** Mostly deaths, so that there are suspects. */
function countsOf({ index, seen, flag }: EventDraft): LossCount {
  if (index < 3) return flag ? "aloneDeath" : "death";
  return seen < 2 ? "attempt" : "nothing";
}

export function eventOfDraft(place: DraftPlace, draft: EventDraft): GivenEvent {
  const { index, flag } = draft;
  const dueAt = Math.max(0, place.now + draft.inMs);
  switch (draft.kind) {
    // No caller can give these by their types; whoever does so is refused.
    case "created":
      return { ...refused, scheduledAt: dueAt } as unknown as GivenEvent;
    case "forked":
      return {
        kind: "forked",
        from: { execution: place.id, version: 0, isRetry: flag },
      } as unknown as GivenEvent;
    case "locked":
      return {
        kind: "locked",
        holder: { ...place.worker, owner: place.owner },
        leaseUntil: dueAt,
        retry,
        codeVersion: flag ? `v${index}` : null,
        ...(draft.seen === 3 && { alone: true }),
      };
    case "unlocked":
      return { kind: "unlocked", dueAt, reason: "drafted" };
    case "attemptFailed":
      return { kind: "attemptFailed", dueAt, error: { message: "drafted" } };
    case "attemptTimedOut":
      return { kind: "attemptTimedOut", dueAt, counts: countsOf(draft) };
    case "ownerDied":
      return { kind: "ownerDied", owner: place.owner, dueAt, counts: countsOf(draft) };
    case "cancellationRequested":
      return {
        kind: "cancellationRequested",
        reason: flag ? "drafted" : null,
        cause: (["request", "deadline", "force"] as const)[index - 1] ?? "force",
      };
    case "parked":
      return {
        kind: "parked",
        code: "NONDETERMINISM",
        reason: "drafted",
        codeVersion: flag ? `v${index}` : null,
        ...(flag && { mismatch: { call: index, version: null, recorded: null, actual: null } }),
        ...(draft.seen === 3 && { alone: true }),
      };
    case "continued":
      return newStart(place, draft);
    case "finished":
      return {
        kind: "finished",
        result: flag ? { kind: "completed", value: 1 } : { kind: "timedOut" },
      };
    case "paused":
    case "unpaused":
    case "unparked":
      return { kind: draft.kind };
    default:
      return {
        ...historyOf(place, draft, draft.kind),
        call: index,
        seen: seenOf(place, draft),
      };
  }
}

/** Half of the time it says what it left unread of its signals; what it names may be none. */
function newStart(place: DraftPlace, draft: EventDraft): GivenEvent {
  const { index, set, flag } = draft;
  const started = { kind: "continued", input: { index } } as const;
  if (!flag) return started;
  const seen = seenOf(place, draft);
  return { ...started, seen, unread: set === 0 ? [] : [Math.min(seen, 1)] };
}

/** What it had been given of what is there; now and then more than that, which must be refused. */
export function seenOf(
  { responses }: Pick<DraftPlace, "responses">,
  { seen, index, flag }: Pick<EventDraft, "seen" | "index" | "flag">,
): number {
  return seen === 3 && index === 3 && flag ? responses + 1 : Math.min(seen, responses);
}

type History = Extract<GivenEvent, { readonly call?: number }>;
type Fact = History extends infer H
  ? H extends History
    ? Omit<H, "call" | "seen">
    : never
  : never;

type Placed =
  | "joinSetCreated"
  | "childRequested"
  | "delayRequested"
  | "joinNext"
  | "joinNextTooMany"
  | "joinNextTried"
  | "waiting"
  | "scheduled"
  | "externalResolved";

/** A set of its run; now and then one of the run before, which must be refused. */
function ownSet(
  continuations: number,
  { set, index, seen }: Pick<EventDraft, "set" | "index" | "seen">,
): JoinSetId {
  const isLate = seen === 2 && index === 2;
  return setOf(set, Math.max(0, continuations - (isLate ? 1 : 0)));
}

function historyOf(
  { id, now, continuations }: DraftPlace,
  draft: EventDraft,
  kind: History["kind"],
): Fact {
  const { set, index, inMs, flag } = draft;
  const joinSet = ownSet(continuations, draft);
  const dueAt = Math.max(0, now + inMs);
  const name = functions[set] as FunctionName;
  switch (kind) {
    case "joinSetCreated":
      return { kind, joinSet };
    case "childRequested": {
      const child = childId(id, joinSet, index);
      return { kind, joinSet, child, function: name, input: { index } };
    }
    case "delayRequested": {
      // Now and then one that belongs to the other set, which must be refused.
      const own = flag && index === 3 ? setOf(1 - set, continuations) : joinSet;
      const delay = delayId(id, own, index);
      const startAt = { in: Math.max(0, inMs) };
      return { kind, joinSet, delay, expiresAt: dueAt, startAt };
    }
    case "joinNext":
      return {
        kind,
        joinSet,
        runExpiresAt: dueAt,
        function: flag ? name : null,
        isClosing: flag,
      };
    case "joinNextTooMany":
      return { kind, joinSet, function: flag ? name : null };
    case "joinNextTried":
      return { kind, joinSet, outcome: flag ? "found" : "pending" };
    case "waiting":
      return {
        kind,
        runExpiresAt: dueAt,
        ...(flag && { wakeAt: now + 20 * (index - 1) ** 4 }),
      };
    case "scheduled": {
      const execution = `later-${index}` as ExecutionId;
      return { kind, execution, function: name, startAt: "now" };
    }
    case "externalResolved":
      return {
        kind,
        execution: id,
        result: { kind: "timedOut" },
        outcome: "resolved",
      };
    default:
      return ownRecord(draft, kind, dueAt);
  }
}

/** What concerns neither sets nor other executions. */
function ownRecord(
  { set, index, flag }: EventDraft,
  kind: Exclude<History["kind"], Placed>,
  dueAt: number,
): Fact {
  const ran = flag ? {} : { ran: [-index, 1 - index] as const };
  switch (kind) {
    case "signalReceived":
      return { kind, signal: signals[set] ?? "", seq: index };
    case "receiveRequested": {
      const signal = signals[set] ?? "";
      return { kind, signal, expiresAt: flag ? dueAt : null };
    }
    case "receiveTimedOut":
      return { kind, signal: signals[set] ?? "" };
    case "cancellationDelivered":
      return { kind };
    case "stepFinished": {
      const outcome = flag ? "completed" : "failed";
      return { kind, name: "step", outcome, value: index, ...ran };
    }
    case "stepBegan":
      return { kind, name: "step", attempt: index };
    case "stepAttemptFailed": {
      const error = { message: "drafted" };
      const isTransaction = flag ? { isTransaction: true as const } : {};
      return {
        kind,
        name: "step",
        attempt: index,
        retryAt: dueAt,
        error,
        ...isTransaction,
        ...ran,
      };
    }
    case "transactionFinished":
      return {
        kind,
        name: "transfer",
        outcome: flag ? "completed" : "failed",
        value: new Map([[index, 1n]]),
        ...(index === 2 && { input: { index } }),
        ...ran,
      };
    case "patched":
      return { kind, patch: `p${index}` };
    default:
      return kind;
  }
}

/** What is created with a drafted event: what it asks for, unless it is one that leaves it out. */
export function childrenOfDraft(
  { id, continuations, worker }: DraftPlace,
  draft: EventDraft,
): readonly ChildDraft[] {
  const { set, index, flag, inMs } = draft;
  const role = (["workflow", "activity", "external"] as const)[index - 1];
  const shape = {
    function: functions[set] ?? "",
    input: { index },
    ...(role && { role }),
    ...(flag && inMs > 10 && { locked: { holder: worker, lease: inMs } }),
  };
  if (draft.kind === "scheduled") return [{ ...shape, id: `later-${index}`, scheduledBy: id }];
  if (draft.kind !== "childRequested" || (flag && index === 3)) return [];
  return [{ ...shape, id: childId(id, ownSet(continuations, draft), index) }];
}
