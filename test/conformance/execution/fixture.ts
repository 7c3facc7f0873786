import { manualClock } from "../../../src/model/time/clock.ts";
import type { ManualClock } from "../../../src/model/time/clock.ts";
import { parseExecutorId, parseRunId } from "../../../src/model/ids/prefixed-id.ts";
import type { Holder } from "../../../src/model/execution/event.ts";
import type { ExecutionState } from "../../../src/model/execution/state.ts";
import { row, rows } from "../../../src/sql/operation.ts";
import type { Tx } from "../../../src/sql/operation.ts";
import { spelled, sql } from "../../../src/sql/statement.ts";
import type { Statement } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import type { LockOptions } from "../../../src/stores/execution/lock/terms.ts";
import { stateColumns, stateOf } from "../../../src/stores/execution/state-row.ts";
import type { StateRow } from "../../../src/stores/execution/state-row.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend, Place } from "../backend.ts";

/** The instant at which every test of the execution log begins. */
export const T0 = 1_000_000;

/** Who locks in these tests: two rounds of one executor, and another executor. */
export const ann: Pick<Holder, "executor" | "run"> = {
  executor: parseExecutorId("Exr_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
  run: parseRunId("Run_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
};
export const annLater: Pick<Holder, "executor" | "run"> = {
  executor: ann.executor,
  run: parseRunId("Run_01BX5ZZKBKACTAV9WEVGEMMVRZ"),
};
export const bob: Pick<Holder, "executor" | "run"> = {
  executor: parseExecutorId("Exr_01BX5ZZKBKACTAV9WEVGEMMVRZ"),
  run: parseRunId("Run_01BX5ZZKBKACTAV9WEVGEMMVRZ"),
};

/** A lease of a second by `ann`. */
export const byAnn: LockOptions = { holder: ann, lease: 1_000 };
export const byBob: LockOptions = { holder: bob, lease: 1_000 };

/** An open database with an execution log on a clock that the test moves. */
export interface ExecutionFixture {
  readonly database: Database;
  readonly place: Place;
  readonly clock: ManualClock;
  readonly store: Executions;
}

/** A test body with an execution log that has nothing in it. */
export function onExecutions(
  backend: Backend,
  body: (fixture: ExecutionFixture) => Promise<void>,
): () => Promise<void> {
  return () =>
    withPlace(backend, async (place) => {
      const database = await place.open();
      const clock = manualClock(T0);
      const store = executions(database, { clock, entropy: allZero });
      await body({ database, place, clock, store });
    });
}

/** No retry is spread: a pause is as long as its policy says. Ids still differ, since they count up. */
const allZero = { bytes: (length: number) => new Uint8Array(length) };

/** The ids of what one round of locking by `bob` gets. */
export async function lockedIds(
  store: Executions,
  limit: number,
  ...functions: readonly string[]
): Promise<readonly string[]> {
  const { locked } = await store.lockPending({ ...byBob, functions, limit });
  return locked.map(({ id }) => id);
}

/** What the state row says, without the columns a test has no opinion about. */
export async function stateOfExecution(database: Database, id: string): Promise<ExecutionState> {
  const found = await database.read("stateOfExecution", () =>
    row<StateRow>(sql`SELECT ${stateColumns} FROM holdfast_execution WHERE id = ${id}`),
  );
  if (found === undefined) throw new Error(`There is no execution ${id}.`);
  return stateOf(found);
}

/** The version and pending state in one, since most tests ask for both. */
export async function standing(
  { database }: Pick<ExecutionFixture, "database">,
  id: string,
): Promise<Pick<ExecutionState, "version" | "pending" | "lifecycle">> {
  const { version, pending, lifecycle } = await stateOfExecution(database, id);
  return { version, pending, lifecycle };
}

/** The log as a database shell shows it: version, kind and body of each event. */
export async function logOf(
  { database }: Pick<ExecutionFixture, "database">,
  id: string,
): Promise<readonly (readonly [number, string, object])[]> {
  const found = await database.read("logOf", () =>
    rows<{ version: number; kind: string; body: string }>(sql`
      SELECT e.version, e.kind, e.body FROM holdfast_execution_event e
        JOIN holdfast_execution x ON x.key = e.execution
      WHERE x.id = ${id} ORDER BY e.version`),
  );
  return found.map((event) => [event.version, event.kind, JSON.parse(event.body) as object]);
}

/** The kinds alone: "created locked finished". */
export async function kindsOf(
  fixture: Pick<ExecutionFixture, "database">,
  id: string,
): Promise<string> {
  const log = await logOf(fixture, id);
  return log.map(([, kind]) => kind).join(" ");
}

/** Responses as stored: seq, time, set or signal, what it answers for, and how. */
export async function responsesOf(
  { database }: Pick<ExecutionFixture, "database">,
  id: string,
): Promise<readonly (readonly [number, number, string, string, string, number | null])[]> {
  const found = await database.read("responsesOf", () =>
    rows<{
      seq: number;
      at: number;
      inbox: string;
      source: string;
      outcome: string;
      finished_version: number | null;
    }>(sql`
      SELECT r.seq, r.at, r.inbox, r.source, r.outcome, r.finished_version FROM holdfast_execution_response r
        JOIN holdfast_execution x ON x.key = r.execution
      WHERE x.id = ${id} ORDER BY r.seq`),
  );
  return found.map((one) => [
    one.seq,
    one.at,
    one.inbox,
    one.source,
    one.outcome,
    one.finished_version,
  ]);
}

/** The ids of delays that nobody has answered, in order. */
export async function openDelays({
  database,
}: Pick<ExecutionFixture, "database">): Promise<readonly string[]> {
  const found = await database.read("openDelays", () =>
    rows<{ id: string }>(sql`SELECT id FROM holdfast_execution_delay ORDER BY id`),
  );
  return found.map(({ id }) => id);
}

const tables: readonly (readonly [name: string, order: string])[] = [
  ["holdfast_execution", "key"],
  ["holdfast_execution_event", "seq"],
  ["holdfast_execution_response", "key"],
  ["holdfast_execution_delay", "key"],
  ["holdfast_execution_tag", "execution, tag"],
  ["holdfast_execution_log", "key"],
  ["holdfast_execution_backtrace", "execution, version_from"],
  ["holdfast_execution_stack", "hash"],
];

const dumps: readonly Statement[] = tables.map(([name, order]) => {
  const text = `SELECT * FROM ${name} ORDER BY ${order}`;
  return spelled({ sqlite: text, postgres: text });
});

/** The same of all tables: each statement is a round trip, and tests look often. */
const dumpAtOnce: Statement = spelled({
  sqlite: "",
  postgres: tables
    .map(
      ([name, order], index) =>
        `(SELECT ${index} AS place, row_to_json(t)::text AS found FROM ${name} t ORDER BY ${order})`,
    )
    .join(" UNION ALL "),
});

/** Every row of the execution log, for telling whether anything was written. */
export function dump({
  database,
}: Pick<ExecutionFixture, "database">): Promise<readonly (readonly object[])[]> {
  return database.read("dump", function* (): Tx<readonly (readonly object[])[]> {
    const all: object[][] = [];
    if (database.dialect === "sqlite") {
      for (const table of dumps) all.push((yield* rows(table)).map((found) => ({ ...found })));
      return all;
    }
    for (const _ of tables) all.push([]);
    for (const { place, found } of yield* rows<{
      readonly place: number;
      readonly found: string;
    }>(dumpAtOnce))
      all[place]?.push(JSON.parse(found) as object);
    return all;
  });
}

/** The code of the error that a call must end with, having written nothing. */
export async function refusal(
  fixture: Pick<ExecutionFixture, "database">,
  call: () => Promise<unknown>,
): Promise<string | undefined> {
  const before = await dump(fixture);
  const { code } = await rejection(call());
  const after = await dump(fixture);
  if (JSON.stringify(after) !== JSON.stringify(before))
    throw new Error(`The call was refused (${code}) but left something behind.`);
  return code;
}
