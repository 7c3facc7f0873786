import { manualClock } from "../../../src/model/time/clock.ts";
import type { ManualClock } from "../../../src/model/time/clock.ts";
import { delayId } from "../../../src/model/ids/delay-id.ts";
import type { DelayId } from "../../../src/model/ids/delay-id.ts";
import { seededEntropy } from "../../../src/model/entropy.ts";
import { isHoldfastError } from "../../../src/model/errors.ts";
import type { ErrorCode } from "../../../src/model/errors.ts";
import type { Holder } from "../../../src/model/execution/event.ts";
import type { Renewal } from "../../../src/model/execution/fold-pending.ts";
import type { ExecutionId } from "../../../src/model/ids/execution-id.ts";
import { rows } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import type { AppendOptions } from "../../../src/stores/execution/log/append.ts";
import { executionContext, type ExecutionContext } from "../../../src/stores/execution/context.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import type { StateRow } from "../../../src/stores/execution/state-row.ts";
import { calls } from "./calls.ts";
import { setOf, workers } from "./drafts.ts";
import type { DraftPlace } from "./drafts.ts";
import type { Step, StepName } from "./steps.ts";

/** What a caller was told: a text that is the same on every backend, or an error's code. */
export interface Told {
  readonly call: StepName;
  readonly outcome?: string;
  readonly code?: ErrorCode;
  /** True when the call changed something, so that it counts as tried. */
  readonly isEventful: boolean;
}

/** What must be known of the tables to make calls that meet something. */
export interface Peek {
  readonly executions: readonly PeekRow[];
  readonly delays: readonly { readonly id: string }[];
}

type PeekRow = Pick<
  StateRow,
  | "key"
  | "id"
  | "role"
  | "version"
  | "state"
  | "lifecycle"
  | "executor"
  | "run"
  | "responses"
  | "continuations"
> & { readonly deadline_at: number | null };

export function peek(database: Database): Promise<Peek> {
  return database.read("peek", function* () {
    return {
      executions: yield* rows<PeekRow>(sql`
        SELECT key, id, role, version, state, lifecycle, executor, run, responses, continuations, deadline_at FROM holdfast_execution`),
      delays: yield* rows<{ readonly id: string }>(sql`
        SELECT id FROM holdfast_execution_delay ORDER BY id`),
    };
  });
}

const nobody: PeekRow = {
  key: 0,
  id: "nobody" as ExecutionId,
  role: "workflow",
  version: 0,
  state: "pending",
  lifecycle: "active",
  executor: null,
  run: null,
  responses: 0,
  continuations: 0,
  deadline_at: null,
};

/** What a call is meant for. Some calls go to others all the same. */
const fitting: Partial<Record<StepName, (row: PeekRow) => boolean>> = {
  append: ({ state, lifecycle }) => state !== "finished" && lifecycle === "active",
  finish: ({ state }) => state !== "finished",
  lock: ({ state, lifecycle }) => state === "pending" && lifecycle === "active",
  extend: ({ state }) => state === "locked",
  renew: ({ executor }) => executor !== null,
  unlock: ({ state }) => state === "locked",
  pause: ({ state }) => state !== "finished",
  unpause: ({ lifecycle }) => lifecycle === "paused",
  unpark: ({ lifecycle }) => lifecycle === "parked",
  cancelByForce: ({ state }) => state !== "finished",
  cancelActivity: ({ role, state }) => role === "activity" && state !== "finished",
  resolve: ({ role }) => role === "external",
  expireLock: ({ state }) => state === "locked",
  expireDeadline: ({ deadline_at: deadlineAt, state }) =>
    deadlineAt !== null && state !== "finished",
  releaseDead: ({ executor }) => executor !== null,
  pruneHistory: ({ continuations }) => continuations > 0,
  retry: ({ state, role }) => state === "finished" && role !== "external",
};

/** Does what steps say to one database, on a clock of its own. */
export class ExecutionModel {
  readonly clock: ManualClock = manualClock(1_000_000);
  readonly database: Database;
  readonly store: Executions;
  readonly context: ExecutionContext;
  /** Renewals leave no event, so a fold is told of them. */
  readonly renewals = new Map<string, Renewal[]>();
  #peek: Peek = { executions: [], delays: [] };

  constructor(database: Database) {
    this.database = database;
    const options = { clock: this.clock, entropy: seededEntropy(1) };
    this.store = executions(database, options);
    this.context = executionContext(database, options);
  }

  /** @throws what is no error of ours. */
  async take(step: Step, seen: Peek): Promise<Told> {
    const { call } = step;
    this.#peek = {
      executions: seen.executions.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      delays: seen.delays,
    };
    try {
      const answer = await calls[call](this, step);
      const outcome = JSON.stringify(answer, (name, value: unknown) =>
        name === "key" ? undefined : typeof value === "bigint" ? String(value) : value,
      )?.replaceAll(this.database.owner, "Own");
      const isEventful = !uneventful.has(outcome ?? "");
      return { call, isEventful, ...(outcome !== undefined && { outcome }) };
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      return { call, code: error.code, isEventful: false };
    }
  }

  /** The execution that a step is about; one that does not exist when there is none. */
  target({ call, of, on, seen }: Step): PeekRow {
    const all = this.#peek.executions;
    if (on !== undefined) return all.find(({ id }) => id === on) ?? nobody;
    const fits = fitting[call];
    const some = seen > 0 && fits !== undefined ? all.filter(fits) : all;
    const choice = some.length > 0 ? some : all;
    return choice[of % Math.max(1, choice.length)] ?? nobody;
  }

  /** Renews whatever there is for one holder; what it has is renewed. */
  async renew(step: Step): Promise<unknown> {
    const runs = this.#peek.executions.map(({ id, key }) => ({ id, key }));
    const lease = Math.max(0, step.inMs);
    const beside = step.flag;
    const { lost } = await this.store.renew(runs, {
      holder: this.fence(step).fence ?? this.worker(step),
      lease,
      beside,
    });
    const leaseUntil = this.clock.now() + lease;
    for (const { id, version, responses } of (await peek(this.database)).executions) {
      if (lost.includes(id)) continue;
      const renewal = { version, responses, leaseUntil, beside };
      this.renewals.set(id, [...(this.renewals.get(id) ?? []), renewal]);
    }
    return lost.length === runs.length ? "nothing renewed" : { lost };
  }

  version(step: Step): number {
    return Math.max(0, this.target(step).version + 1 + step.versionBy);
  }

  /** The key that saves a lookup; now and then one that is wrong. */
  key(step: Step): number {
    return this.target(step).key + (step.index === 3 ? 1 : 0);
  }

  worker({ worker }: Pick<Step, "worker">): Pick<Holder, "executor" | "run"> {
    const [first = never(), second = never()] = workers;
    return worker === 0 ? first : second;
  }

  /** Whoever has it may write; a fence that is not there lets anybody. */
  fence(step: Step): Pick<AppendOptions, "fence"> {
    const { executor, run } = this.target(step);
    if (step.fence === "none") return {};
    if (step.fence === "wrong") return { fence: this.worker({ worker: 1 - step.worker }) };
    return executor !== null && run !== null ? { fence: { executor, run } } : {};
  }

  /** An open delay, or one that may never have been. */
  /** Those that are open, or all but the first; and one that may not be. */
  openDelays(step: Step): readonly DelayId[] {
    const open = this.#peek.delays.map(({ id }) => id as DelayId);
    return [...new Set([this.delay(step), ...open.slice(Number(step.flag))])];
  }

  delay(step: Step): DelayId {
    const { delays } = this.#peek;
    const open = delays[step.of % Math.max(1, delays.length)];
    return step.seen > 0 && step.on === undefined && open !== undefined
      ? (open.id as DelayId)
      : delayId(this.target(step).id, setOf(step.set, this.target(step).continuations), step.index);
  }

  place(step: Step): DraftPlace {
    return {
      id: this.target(step).id,
      responses: this.target(step).responses,
      continuations: this.target(step).continuations,
      now: this.clock.now(),
      owner: this.database.owner,
      worker: this.worker(step),
    };
  }
}

function never(): never {
  throw new Error("There are two workers.");
}

/** Answers that say that there was nothing to do. */
const uneventful: ReadonlySet<string> = new Set(
  [
    "nothing received",
    "nothing renewed",
    "notExpired",
    "alreadyExpired",
    "alreadyCancelled",
    "alreadyCancelling",
    "alreadyFinished",
    "replayed",
    { outcome: "notExpired" },
    { outcome: "notHeld" },
    { events: 0, responses: 0, trees: 0, skipped: 0 },
    ...[true, false].flatMap((isLimited) =>
      [true, false].map((hasSuspects) => ({
        locked: [],
        damaged: [],
        parked: [],
        isLimited,
        hasSuspects,
      })),
    ),
  ].map((answer) => JSON.stringify(answer)),
);
