import { expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import type { Database } from "../../src/sql/database.ts";
import { rows, type Tx } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import { executions } from "../../src/stores/execution/executions.ts";
import type { Executions } from "../../src/stores/execution/executions.ts";
import { byAnn } from "../conformance/execution/fixture.ts";
import { lookedAt } from "../fixtures/long-session.ts";
import { withNewPlace } from "./place.ts";
import type { Shell } from "./place.ts";

/** So many that reading them all would be noticed. */
const sleepers = 30_000;

/** All of them are newer than what is looked for, so that a walk would meet them first. */
async function fill(shell: Shell): Promise<void> {
  await shell.unsafe(`
    INSERT INTO holdfast_execution
      (id, role, function, input_hash, created_at, scheduled_at, version, state, lifecycle, due_at, failures, deaths,
       responses, history_from, code_version)
    SELECT 'sleeper-' || v, 'workflow', 'f', 'h', 1000 + v, 1, 0, 'pending', 'active', 9000000, 0, 0, 0, 0, 'v1'
    FROM generate_series(1, ${sleepers}) AS numbers (v)`);
  await shell.unsafe(`
    INSERT INTO holdfast_execution_event (execution, version, at, responses, kind, call, seen, body)
    SELECT key, v, 1, 0, 'created', 0, 0, '{}' FROM holdfast_execution, generate_series(0, 1) AS versions (v)
    WHERE id LIKE 'sleeper-%'`);
  await shell.unsafe(`
    INSERT INTO holdfast_execution_delay (id, execution, inbox, expires_at, is_paused)
    SELECT 'Delay_' || id, key, 'o:1', 9000000, 0 FROM holdfast_execution WHERE id LIKE 'sleeper-%'`);
  await shell.unsafe("ANALYZE");
}

async function findable(log: Executions): Promise<void> {
  const draft = { function: "f", concurrencyKey: "ada" };
  for (const id of ["paused", "parked", "cancelling", "running", "hot"])
    await log.create({ id, ...draft });
  await log.pause("paused");
  await log.append("parked", 1, [{ kind: "parked", code: "C", reason: "r", codeVersion: null }]);
  for (const id of ["cancelling", "running", "hot"]) await log.lock(id, 1, byAnn);
  await log.cancel("cancelling");
  await log.append("hot", 2, [{ kind: "waiting", runExpiresAt: 1_000, call: 0, seen: 0 }]);
  await log.signal("hot", "go", 1);
}

interface PlanNode {
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Rows that the steps of a plan have given or thrown away. */
function visits(node: PlanNode): number {
  const own = node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0);
  return (node.Plans ?? []).reduce((sum, plan) => sum + visits(plan), own * node["Actual Loops"]);
}

/** The page of a list, and the rows that its statements visited. */
async function measured<P>(
  database: Database,
  list: () => Tx<P>,
): Promise<{ readonly page: P; readonly visited: number }> {
  let visited = 0;
  const page = await database.read("list", () =>
    lookedAt(list(), function* (statement) {
      const found = yield* rows(sql`EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${statement}`);
      const text = Object.values(found[0] ?? {})[0];
      const [plan] = (typeof text === "string" ? JSON.parse(text) : text) as readonly {
        readonly Plan: PlanNode;
      }[];
      if (plan !== undefined) visited += visits(plan.Plan);
    }),
  );
  return { page, visited };
}

test("[R11] what is parked, paused, being cancelled or run is one lookup away, however many sleep", () =>
  withNewPlace(async (place) => {
    const database = await place.open();
    const log = executions(database, { clock: manualClock(100) });
    await findable(log);
    await fill(place.shell());
    for (const [filter, ids] of [
      [{ status: "parked" }, ["parked"]],
      [{ status: "paused" }, ["paused"]],
      [{ status: "cancelling" }, ["cancelling"]],
      [{ status: "cancelling", function: "f" }, ["cancelling"]],
      [{ status: "running" }, ["running", "hot"]],
      [{ concurrencyKey: "ada" }, ["running", "paused", "parked", "hot", "cancelling"]],
    ] as const) {
      const { page, visited } = await measured(database, log.list.prepare(filter));
      expect(page.items.map(({ id }) => id)).toEqual(ids);
      expect(page.next).toBeUndefined();
      expect([filter, visited < 200]).toEqual([filter, true]);
    }
  }));

test("[RN7] open questions are one lookup away, however many runs sleep and questions have ended", () =>
  withNewPlace(async (place) => {
    const database = await place.open();
    const log = executions(database, { clock: manualClock(100) });
    const role = "external";
    await log.create({ id: "asks", function: "f" });
    for (const n of [1, 2])
      await log.create({ id: `asks.o:${n}_1`, function: "q", role, tags: ["t"] });
    const shell = place.shell();
    await fill(shell);
    await shell.unsafe(`
      INSERT INTO holdfast_execution
        (id, role, function, input_hash, created_at, scheduled_at, version, state, lifecycle, finished_at, result_kind,
         failures, deaths, responses, history_from)
      SELECT 'ended-' || v, 'external', 'q', 'h', 2000 + v, 1, 1, 'finished', 'active', 1, 'completed', 0, 0, 0, 0
      FROM generate_series(1, ${sleepers}) AS numbers (v)`);
    await shell.unsafe("ANALYZE");
    for (const filter of [{}, { function: "f" }, { tag: "t" }, { run: "asks" }, { limit: 2 }]) {
      const { page, visited } = await measured(database, log.questions.prepare(filter));
      expect(page.items.map(({ id }) => id)).toEqual(["asks.o:2_1", "asks.o:1_1"]);
      expect([filter, visited < 200]).toEqual([filter, true]);
    }
  }));
