import { beforeAll, describe, expect, test } from "vitest";
import { loadDriver } from "../../src/backends/sqlite/drivers.ts";
import type { RawConnection } from "../../src/backends/sqlite/drivers.ts";
import { parseExecutionId } from "../../src/model/execution-id.ts";
import { parseJoinSetId } from "../../src/model/join-set-id.ts";
import { Request } from "../../src/sql/operation.ts";
import type { Operation } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import type { Parameter, Statement } from "../../src/sql/statement.ts";
import type { Database } from "../../src/sql/database.ts";
import { readBacktrace } from "../../src/stores/execution/read/backtraces.ts";
import { countExecutions } from "../../src/stores/execution/read/counts.ts";
import type { ExecutionFilter } from "../../src/stores/execution/read/list-filter.ts";
import { listExecutions } from "../../src/stores/execution/read/list.ts";
import type { ExecutionPage } from "../../src/stores/execution/read/list.ts";
import { appendLogs } from "../../src/stores/execution/read/logs.ts";
import {
  listEvents,
  readEvent,
  readLastEvent,
} from "../../src/stores/execution/read/read-events.ts";
import { listLogs } from "../../src/stores/execution/read/read-logs.ts";
import { listResponses } from "../../src/stores/execution/read/read-responses.ts";
import {
  readCreated,
  readExecution,
  readResult,
} from "../../src/stores/execution/read/read.ts";
import { readTree } from "../../src/stores/execution/read/tree.ts";
import {
  append,
  create,
  createMany,
  finish,
  newExecution,
  patched,
} from "../conformance/execution/records.ts";
import { Folder, driverName } from "./place.ts";

/**
 * The plans of the statements that reads run, from a real database: a filter
 * that is frequent enough to be asked along the way has plans of its own.
 */

const root = parseExecutionId("root");
const child = parseExecutionId("root.n:a_1");
const order = "holdfast_execution_";

interface Plan {
  readonly text: string;
  readonly steps: readonly string[];
}

/** Drives the body of a read by hand, and notes the plan of each of its statements. */
function plansOf<I, O>(
  connection: RawConnection,
  read: Operation<I, O>,
  input: I,
): { readonly plans: readonly Plan[]; readonly answer: O } {
  const plans: Plan[] = [];
  const body = read.one(input);
  let step = body.next();
  while (step.done !== true) {
    const { statement, want } = step.value;
    if (statement === undefined) throw new Error("Not a statement");
    plans.push(planOf(connection, statement));
    const found = connection
      .prepare(statement.template.sqlite)
      .all(...bound(statement.parameters));
    step = body.next(want === "row" ? found[0] : found);
  }
  return { plans, answer: step.value };
}

function planOf(connection: RawConnection, statement: Statement): Plan {
  const text = statement.template.sqlite;
  const steps = connection
    .prepare(`EXPLAIN QUERY PLAN ${text}`)
    .all(...bound(statement.parameters))
    .map((found) => (found as { readonly detail: string }).detail);
  return { text, steps };
}

/** As the seam binds them: a whole number is an integer, not a real. */
function bound(parameters: readonly Parameter[]): never[] {
  return parameters.map((value) =>
    typeof value === "number" ? BigInt(value) : value,
  ) as never[];
}

/** The steps that look at a table of ours from end to end, not along an index with an end to it. */
function scans({ text, steps }: Plan): readonly string[] {
  return steps.filter(
    (step) =>
      /^SCAN (?!CONSTANT|few|near|l$|firsts|items|json_each|\()/.test(step) &&
      !(/ USING (COVERING )?INDEX /.test(step) && /LIMIT/.test(text)),
  );
}

describe("the plans of reads", () => {
  const folder = new Folder();
  let connection: RawConnection;
  beforeAll(async () => {
    const database = await folder.open();
    await create(database, "root", { tags: ["rare"] });
    await create(database, "root.n:a_1");
    await append(database, "root", 1, 1, patched("p"));
    await finish(database, "root.n:a_1", 2, { kind: "timedOut" });
    await createMany(
      database,
      Array.from({ length: 2_001 }, (_, n) =>
        newExecution(`run-${n}`, { at: n, function: "bulk", tags: ["all"] }),
      ),
    );
    await database.write(appendLogs, {
      id: child,
      lines: [{ at: 1, level: "info", message: "m" }],
    });
    connection = loadDriver(driverName).open(folder.file(), {
      readOnly: true,
    });
    return async () => {
      connection.close();
      await folder.dispose();
    };
  });

  const expectNoScan = (plans: readonly Plan[]): void => {
    for (const plan of plans)
      expect([plan.text, scans(plan)]).toEqual([plan.text, []]);
  };

  test("would be noticed if they scanned", () => {
    const whole = sql`SELECT key FROM holdfast_execution WHERE role = 'x' LIMIT 1`;
    const unbounded = sql`SELECT id FROM holdfast_execution ORDER BY id`;
    expect(scans(planOf(connection, whole))).toEqual([
      "SCAN holdfast_execution",
    ]);
    expect(scans(planOf(connection, unbounded))).toHaveLength(1);
  });

  test("of single reads and of the parts of one execution never scan", () => {
    const plans = [
      plansOf(connection, readExecution, root),
      plansOf(connection, readCreated, root),
      plansOf(connection, readResult, child),
      plansOf(connection, readLastEvent, root),
      plansOf(connection, readEvent, { id: root, version: 1 }),
      plansOf(connection, listEvents, { id: root, limit: 9 }),
      plansOf(connection, listEvents, {
        id: root,
        limit: 9,
        newestFirst: true,
        backtraces: true,
        kinds: ["created"],
      }),
      plansOf(connection, listResponses, { id: root, limit: 9 }),
      plansOf(connection, listResponses, { id: root, limit: 9, after: 0 }),
      plansOf(connection, listLogs, { id: root, limit: 9 }),
      plansOf(connection, listLogs, {
        id: root,
        limit: 9,
        includeDerived: true,
      }),
      plansOf(connection, readTree, { id: root, limit: 1 }),
      plansOf(connection, readTree, { id: root, limit: 1, after: child }),
    ].flatMap(({ plans: of }) => of);
    expect(plans.length).toBeGreaterThan(20);
    expectNoScan(plans);
    expect(
      plans.filter(({ steps }) =>
        steps.some((step) => /TEMP B-TREE/.test(step)),
      ),
    ).toEqual([]);
  });

  test("of responses of one set go by number, not by set", () => {
    const { plans } = plansOf(connection, listResponses, {
      id: root,
      limit: 9,
      joinSet: parseJoinSetId("n:a"),
    });
    expectNoScan(plans);
    expect(plans.at(-1)?.steps[0]).toContain(`${order}response_seq`);
  });

  test("of counts go from key to key", async () => {
    const plans: Plan[] = [];
    const database = {
      read(read: Operation<unknown, unknown>, input: unknown) {
        const { plans: of, answer } = plansOf(connection, read, input);
        plans.push(...of);
        return Promise.resolve(answer);
      },
    } as unknown as Database;
    const { counts } = await countExecutions(database, {
      now: 0,
      sliceRows: 1_000,
      pause: () => Promise.resolve(),
    });
    expect(counts.map(({ count }) => count)).toEqual([1, 2_000, 1, 1]);
    expect(plans).toHaveLength(4);
    for (const { steps } of plans.slice(1))
      expect(steps.join("\n")).toContain(
        "holdfast_execution USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
      );
  });

  test("of backtraces go by their key", () => {
    for (const which of ["first", "last", { version: 1 }] as const) {
      const body = readBacktrace.one({ id: root, which });
      body.next();
      const { value } = body.next({ key: 1 });
      if (!(value instanceof Request) || value.statement === undefined)
        throw new Error("Not a statement");
      expect(planOf(connection, value.statement).steps).toEqual([
        expect.stringMatching(/^SEARCH r USING PRIMARY KEY \(execution=\?/),
        "SEARCH b USING PRIMARY KEY (hash=?)",
      ]);
    }
  });

  test.each<[string, ExecutionFilter]>([
    ["created", {}],
    ["created", { status: "finished" }],
    ["created", { createdFrom: 3, createdTo: 9 }],
    ["created", { tag: "all" }],
    ["created", { idPrefix: "run-" }],
    ["created", { functionPrefix: "bu" }],
    ["function", { function: "bulk" as never }],
    ["function", { function: "bulk" as never, status: "pending" }],
    ["function", { function: "bulk" as never, tag: "all" }],
    ["function", { function: "bulk" as never, topLevelOnly: true }],
    ["top", { topLevelOnly: true }],
    ["open", { hideFinished: true }],
    ["open", { status: "blocked" }],
    ["open", { status: "pending", topLevelOnly: true }],
    ["result", { status: "timedOut" }],
    ["parent", { parent: root }],
  ])("of a list walk along the %s index for %j", (index, filter) => {
    const list = (cursor?: string) =>
      plansOf(connection, listExecutions, {
        filter,
        limit: 1,
        cursor,
        now: 10,
      });
    const first = list();
    const { older, newer }: ExecutionPage = first.answer;
    for (const cursor of [undefined, older, newer]) {
      const { plans } = list(cursor);
      expectNoScan(plans);
      const page = plans.find(({ text }) => text.includes("AS near"));
      expect(page?.steps.join("\n")).toMatch(
        new RegExp(` holdfast_execution USING INDEX ${order}${index}\\b`),
      );
    }
  });

  test.each<[string, ExecutionFilter]>([
    [`COVERING INDEX ${order}id`, { idPrefix: "root" }],
    ["PRIMARY KEY", { tag: "rare" }],
    [`INDEX ${order}expiry`, { status: "locked" }],
    [`INDEX ${order}function`, { functionPrefix: "orders" }],
  ])("of a list begin with the few rows by %s for %j", (index, filter) => {
    const { plans } = plansOf(connection, listExecutions, {
      filter,
      limit: 1,
      now: 10,
    });
    expectNoScan(plans);
    const page = plans.at(-1)?.steps ?? [];
    expect(page.join("\n")).toContain(index);
    expect(page.join("\n")).toContain("SEARCH near USING INTEGER PRIMARY KEY");
  });
});
