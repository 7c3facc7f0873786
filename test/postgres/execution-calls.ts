import { delayId, type ExecutionEvent, type JoinSetId } from "../../src/executions.ts";
import {
  type OwnerId,
  operation,
  rows,
  type Operation,
  type Tx,
  sql,
  type Database,
} from "../../src/kernel.ts";
import { splitToParts } from "../../src/model/ids/execution-id.ts";
import { appendEvents, createAndLock } from "../fixtures/execution-operations.ts";
import type { AppendEvents } from "../../src/stores/execution/log/append.ts";
import { assertAppendable } from "../../src/stores/execution/log/event-check.ts";
import { createExecution } from "../fixtures/execution-operations.ts";
import {
  finished,
  holder,
  idOf,
  joinNext,
  lockedEvent,
  makeExecution,
  newExecutionOf,
  otherHolder,
  step,
} from "../fixtures/execution-parts.ts";
import { storedUnder } from "./execution-tables.ts";

/** The same meaning without the set form. */
function alone<I, O>({ name, key, one }: Operation<I, O>): Operation<I, O> {
  return operation(`${name} alone`, { key, one, isolation: "readCommitted" });
}
const appendAlone = alone(appendEvents);
const createAlone = alone(createExecution);
const createLockedAlone = alone(createAndLock);

/** What there is before the first round. Ids are given behind a prefix of the run. */
const population: readonly (readonly [
  string,
  { readonly role?: "activity"; readonly isPaused?: true },
  (id: string) => readonly ExecutionEvent[],
])[] = [
  ["top1", {}, () => [lockedEvent()]],
  ["top2", {}, () => [lockedEvent(), ownerDied, lockedEvent()]],
  ["top3", {}, (id) => [lockedEvent(), delay(id, 1)]],
  // Its delay was over when it was asked for, and is answered.
  ["slept", {}, (id) => [lockedEvent(), delay(id, 1, 500)]],
  ["task", { role: "activity" }, () => [lockedEvent()]],
  ["paused", { isPaused: true }, () => []],
  [
    "cancelling",
    {},
    () => [lockedEvent(), { kind: "cancellationRequested", reason: null, cause: "request" }],
  ],
  ["over", {}, () => [lockedEvent(), finished()]],
  ["joining", {}, () => [lockedEvent(), joinNext("n:js")]],
  ["joining.n:js_1", { role: "activity" }, () => [lockedEvent()]],
  ["joining.n:js_2", { role: "activity" }, () => [lockedEvent()]],
  ["joining.n:other_1", {}, () => [lockedEvent()]],
  [
    "waiting",
    {},
    () => [lockedEvent(), { kind: "waiting", call: 1, seen: 0, runExpiresAt: 500, wakeAt: null }],
  ],
  ["waiting.o:1_1", { role: "activity" }, () => [lockedEvent()]],
  ["waiting.o:1_2", { role: "activity" }, () => [lockedEvent(), finished()]],
];
export const populationIds: readonly string[] = population.map(([id]) => id);

const ownerDied: ExecutionEvent = {
  kind: "ownerDied",
  owner: "Own_01ARZ3NDEKTSV4RRFFQ69G5FAV" as OwnerId,
  dueAt: 1_000,
  counts: "death",
};

function delay(id: string, index: number, expiresAt = 9_000): ExecutionEvent {
  const joinSet = "o:9" as JoinSetId;
  return {
    kind: "delayRequested",
    call: 1,
    seen: 0,
    joinSet,
    delay: delayId(idOf(id), joinSet, index),
    expiresAt,
    startAt: { in: "1 hour" },
  } as unknown as ExecutionEvent;
}

export type Events =
  | "step"
  | "steps"
  | "joinNext"
  | "delay"
  | "delays"
  | "sameDelay"
  | "takenDelay"
  | "child"
  | "takenChild"
  | "poison"
  | "finished";

export type Asked =
  | {
      readonly kind: "append";
      readonly id: string;
      readonly events: Events;
      readonly versionOff: number;
      readonly fence: "none" | "right" | "wrong";
      readonly key: "none" | "right" | "wrong";
      readonly respondTo: "none" | "parent" | "wrong";
    }
  | {
      readonly kind: "create" | "createLocked";
      readonly id: string;
      readonly function: string;
      readonly input: number;
      readonly role: "workflow" | "external";
      readonly isPaused: boolean;
      readonly isTagged: boolean;
    };

/**
 * How calls are made: at once, so that they share sets, one after the other, or
 * one after the other without any set form.
 */
export type Manner = "together" | "inTurn" | "alone";

/** A population in a database, and calls to it. */
export class Population {
  readonly database: Database;
  readonly #told = new Set<string>();
  readonly prefix: string;
  readonly #manner: Manner;

  static async make(database: Database, prefix: string, manner: Manner): Promise<Population> {
    await database.write("populate", function* () {
      for (const [id, given, events] of population)
        yield* makeExecution(newExecutionOf(prefix + id, given), events(prefix + id));
    });
    return new Population(database, prefix, manner);
  }

  private constructor(database: Database, prefix: string, manner: Manner) {
    this.database = database;
    this.prefix = prefix;
    this.#manner = manner;
  }

  /** What callers and subscribers were told, in one round. */
  async ask(round: readonly Asked[]): Promise<object> {
    this.#told.clear();
    const calls = await this.#calls(round);
    const stop = this.database.subscribe((hint) => {
      if (hint.kind === "change" && hint.operation.startsWith("execution."))
        this.#told.add(`${hint.operation} ${hint.key}`);
    });
    const results: PromiseSettledResult<object>[] = [];
    if (this.#manner !== "together")
      for (const call of calls) results.push(...(await Promise.allSettled([call()])));
    else results.push(...(await Promise.allSettled(calls.map(async (call) => call()))));
    stop();
    return { told: [...this.#told].toSorted(), answers: results.map(answerOf) };
  }

  stored(): Promise<object> {
    return storedUnder(this.database, this.prefix);
  }

  async #calls(round: readonly Asked[]): Promise<readonly (() => Promise<object>)[]> {
    const isAlone = this.#manner === "alone";
    const known = await this.database.read("versions", () => versionsUnder(`${this.prefix}%`));
    return round.map((asked, index) => {
      const at = 5_000 + index;
      const { database } = this;
      const id = this.prefix + asked.id;
      if (asked.kind !== "append") {
        const { isTagged, kind, ...given } = asked;
        const execution = newExecutionOf(id, {
          ...given,
          at,
          ...(isTagged && { tags: ["red"] }),
        });
        if (kind === "createLocked") {
          const form = isAlone ? createLockedAlone : createAndLock;
          const lock = { at, holder, leaseUntil: at + 1_000, codeVersion: "v" };
          const { input } = asked;
          return () => database.write(form, { execution, lock, input });
        }
        const form = isAlone ? createAlone : createExecution;
        return () => database.write(form, execution);
      }
      const input = appendOf(asked, id, at, known.get(id));
      const form = isAlone ? appendAlone : appendEvents;
      return async () => {
        // What the page asks before it writes.
        assertAppendable(input);
        return database.write(form, input);
      };
    });
  }
}

interface Known {
  readonly key: number;
  readonly version: number;
}

function* versionsUnder(like: string): Tx<ReadonlyMap<string, Known>> {
  const found = yield* rows<Known & { readonly id: string }>(sql`
    SELECT id, key, version FROM holdfast_execution WHERE id LIKE ${like}`);
  return new Map(found.map((each) => [each.id, each]));
}

function appendOf(
  asked: Extract<Asked, { readonly kind: "append" }>,
  id: string,
  at: number,
  known: Known = { key: 0, version: 0 },
): AppendEvents {
  const respondTo = asked.respondTo === "parent" ? splitToParts(idOf(id))?.parent : "nobody";
  return {
    id: idOf(id),
    version: known.version + 1 + asked.versionOff,
    at,
    events: eventsOf(asked.events, id, known.version),
    ...childrenOf(asked.events, id, known.version),
    ...(asked.fence !== "none" && {
      fence: asked.fence === "right" ? holder : otherHolder,
    }),
    ...(asked.key !== "none" && {
      key: known.key + (asked.key === "right" ? 0 : 1_000_000),
    }),
    ...(asked.respondTo !== "none" && respondTo !== undefined && { respondTo: idOf(respondTo) }),
  };
}

function eventsOf(events: Events, id: string, version: number): readonly ExecutionEvent[] {
  switch (events) {
    case "step":
      return [step("charge")];
    case "steps":
      return [step("charge"), { kind: "patched", call: 2, seen: 0, patch: "p" }];
    case "joinNext":
      return [joinNext("n:js")];
    case "delay":
      return [delay(id, version + 2)];
    case "delays":
      return [delay(id, version + 2), step("charge"), delay(id, version + 3)];
    case "sameDelay":
      return [delay(id, version + 2), delay(id, version + 2)];
    case "takenDelay":
      return [delay(id, 1)];
    case "child":
      return [childRequested(id, version + 2), delay(id, version + 2)];
    case "takenChild":
      return [childRequested(id, 1)];
    case "poison":
      return [step("a\0b")];
    default:
      return [finished()];
  }
}

function childRequested(id: string, index: number): ExecutionEvent {
  const joinSet = "n:js" as JoinSetId;
  return {
    kind: "childRequested",
    call: 1,
    seen: 0,
    joinSet,
    child: idOf(`${id}.n:js_${index}`),
    function: "f",
    inputHash: "hash of 1",
  } as unknown as ExecutionEvent;
}

/** A child with a deadline, and one that is paused. The first of "joining" is there already. */
function childrenOf(events: Events, id: string, version: number): Pick<AppendEvents, "children"> {
  if (events !== "child" && events !== "takenChild") return {};
  const index = events === "child" ? version + 2 : 1;
  const child = (more: number, isPaused: boolean) =>
    newExecutionOf(`${id}.n:js_${index + more}`, { input: 1, isPaused });
  return { children: [child(0, false), child(100, true)] };
}

/** What a caller was told, without generated keys. */
function answerOf(result: PromiseSettledResult<object>): unknown {
  if (result.status === "fulfilled")
    return JSON.parse(
      JSON.stringify(result.value, (name, value: unknown) =>
        name === "key" ? undefined : typeof value === "bigint" ? String(value) : value,
      ),
    );
  const { code, details } = result.reason as {
    readonly code: string;
    readonly details: object;
  };
  return { code, details };
}
