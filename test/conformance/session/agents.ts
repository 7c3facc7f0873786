import { manualClock, type ManualClock } from "../../../src/model/time/clock.ts";
import type { ExecutionId } from "../../../src/model/ids/execution-id.ts";
import { run, type Tx } from "../../../src/sql/operation.ts";
import { sql, type Statement } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { recordTransaction } from "../../../src/stores/execution/log/transaction.ts";
import type { QueueBatch } from "../../../src/stores/queue/batch-row.ts";
import type { ClaimForOptions, TurnWork } from "../../../src/stores/queue/claim-turn.ts";
import type { TurnOutcome } from "../../../src/stores/session/turn/commit.ts";
import type { TurnDraft } from "../../../src/stores/session/turn/draft.ts";
import { executions, type Executions } from "../../../src/stores/execution/executions.ts";
import { leases, type Leases } from "../../../src/stores/lease/leases.ts";
import { processes, type Processes } from "../../../src/stores/process/processes.ts";
import type { BatchDraft } from "../../../src/stores/queue/enqueue.ts";
import { queue, type Queue } from "../../../src/stores/queue/queue.ts";
import { sessions, type Sessions } from "../../../src/stores/session/sessions.ts";
import { withPlace, type Backend, type Place } from "../backend.ts";
import { ann } from "../execution/fixture.ts";

/** A database with a session `chat`, whose turns the agent `support` takes, on a clock that stands. */
export interface AgentFixture {
  readonly place: Place;
  readonly database: Database;
  readonly clock: ManualClock;
  readonly sessions: Sessions;
  readonly queue: Queue;
  readonly leases: Leases;
  readonly processes: Processes;
  readonly runs: Executions;
}

/** The function that takes the turns. */
export const support = "agent/support";

export function onAgents(
  backend: Backend,
  body: (fixture: AgentFixture) => Promise<void>,
): () => Promise<void> {
  return () =>
    withPlace(backend, async (place) => {
      const clock = manualClock(1_000);
      const fixture = agentFixture(place, await place.open({ clock }), clock);
      await fixture.sessions.create("chat", { agent: "support" });
      await body(fixture);
    });
}

export function agentFixture(place: Place, database: Database, clock: ManualClock): AgentFixture {
  return {
    place,
    database,
    clock,
    sessions: sessions(database),
    queue: queue(database),
    leases: leases(database),
    processes: processes(database),
    runs: executions(database),
  };
}

/** Sends a message to the session. Messages join. */
export async function say(
  fixture: Pick<AgentFixture, "queue">,
  text: string,
  more: Partial<BatchDraft> = {},
): Promise<void> {
  const items = [{ kind: "message", payload: text }];
  await fixture.queue.enqueue("chat", { items, slot: "join", source: `id:${text}`, ...more });
}

/** The run of the open turn. */
export async function openTurn({
  sessions: store,
}: Pick<AgentFixture, "sessions">): Promise<string> {
  const { openTurn: id } = await store.head("chat");
  if (id === null) throw new Error("No turn is open.");
  return id;
}

/** A run with the version of its next event. */
export interface TakenTurn {
  readonly id: string;
  version: number;
}

/** Runs a body in a transaction of a run, as `ctx.transaction` does. */
export async function inTurn<T>(
  { database, clock }: Pick<AgentFixture, "database" | "clock">,
  turn: TakenTurn,
  body: () => Tx<T>,
): Promise<T> {
  const { id, version } = turn;
  const input = {
    id: id as ExecutionId,
    version,
    at: clock.now(),
    name: "t",
    call: version,
    seen: 0,
    fence: ann,
  };
  let value: T | undefined;
  const recorded = function* (): Tx<null> {
    value = yield* body();
    return null;
  };
  const context = executionContext(database);
  await database.write("of a turn", () => recordTransaction(context, input, recorded), {
    isolation: "readCommitted",
  });
  turn.version += 1;
  return value as T;
}

/** Claims what waits for the turn. */
export function claimed(
  fixture: AgentFixture,
  turn: TakenTurn,
  options?: ClaimForOptions,
): Promise<TurnWork | undefined> {
  return inTurn(fixture, turn, fixture.queue.claimFor.prepare("chat", options));
}

/** Commits a turn in a transaction of its run. */
export async function committed(
  fixture: AgentFixture,
  turn: TakenTurn,
  draft: TurnDraft,
): Promise<TurnOutcome> {
  const handle = await fixture.sessions.open("chat");
  if (handle === undefined) throw new Error("The session is gone.");
  return inTurn(fixture, turn, fixture.sessions.commit.prepare(handle, draft));
}

/** The texts of batches. */
export function textsOf(batches: readonly QueueBatch<unknown>[] | undefined): readonly unknown[] {
  return (batches ?? []).map(({ items: [item] }) => item?.payload);
}

/** The open turn, locked by a worker for an hour. Returns the version of its next event. */
export async function takenTurn(
  fixture: Pick<AgentFixture, "runs" | "sessions">,
): Promise<TakenTurn> {
  const id = await openTurn(fixture);
  const options = { holder: ann, lease: "1 hour", functions: [support], limit: 10 } as const;
  const { locked } = await fixture.runs.lockPending(options);
  const own = locked.find((each) => each.id === id);
  if (own === undefined) throw new Error(`Run ${id} is not due.`);
  return { id, version: own.nextVersion };
}

/** Takes the open turn and lets its code return. */
export async function finishedTurn(fixture: AgentFixture): Promise<string> {
  const { id, version } = await takenTurn(fixture);
  await fixture.runs.finish(id, version, { kind: "completed", value: 1 }, { fence: ann });
  return id;
}

/** The queue in a few words: `a`, `b failed 1`, `c claimed`. */
export async function queued({
  queue: store,
}: Pick<AgentFixture, "queue">): Promise<readonly string[]> {
  const { items } = await store.list("chat");
  return items.map(({ items: [item], isClaimed, failedTurns, isHeldBack }) =>
    [
      item?.payload,
      ...(failedTurns > 0 ? [`failed ${failedTurns}`] : []),
      ...(isHeldBack ? ["held back"] : []),
      ...(isClaimed ? ["claimed"] : []),
    ].join(" "),
  );
}

/** Changes rows past the stores. */
export async function changed(
  { database }: Pick<AgentFixture, "database">,
  ...statements: readonly Statement[]
): Promise<void> {
  await database.write(
    "changed by hand",
    function* () {
      for (const statement of statements) yield* run(statement);
    },
    { isolation: "readCommitted" },
  );
}

/** Lets the deadline of a run pass. Turns get none from the queue, so it is set by hand. */
export async function passDeadline(fixture: AgentFixture, id: string): Promise<void> {
  const { clock, runs } = fixture;
  const at = clock.now();
  await changed(fixture, sql`UPDATE holdfast_execution SET deadline_at = ${at} WHERE id = ${id}`);
  clock.advance(1_000);
  await runs.expireTimers();
  await changed(fixture, sql`UPDATE holdfast_execution SET deadline_at = NULL WHERE id = ${id}`);
}
