import { beforeAll, describe, expect, test } from "vitest";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import type { RawConnection } from "../../src/backends/sqlite/drivers/drivers.ts";
import { manualClock } from "../../src/model/time/clock.ts";
import type { Database } from "../../src/sql/database.ts";
import type { Operation, Tx } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import type { Parameter, Statement } from "../../src/sql/statement.ts";
import { executions } from "../../src/stores/execution/executions.ts";
import type { Executions } from "../../src/stores/execution/executions.ts";
import type { ListExecutionsOptions } from "../../src/stores/execution/read/list-filter.ts";
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

const root = "root";
const child = "root.n:a_1";
const order = "holdfast_execution_";

interface Plan {
  readonly text: string;
  readonly steps: readonly string[];
}

/** Drives a prepared read by hand, and notes the plan of each of its statements. */
function plansOf<O>(
  connection: RawConnection,
  read: Tx<O>,
): { readonly plans: readonly Plan[]; readonly answer: O } {
  const plans: Plan[] = [];
  let step = read.next();
  while (step.done !== true) {
    const { statement, want } = step.value;
    if (statement === undefined) {
      step = read.next();
      continue;
    }
    plans.push(planOf(connection, statement));
    const found = connection.prepare(statement.template.sqlite).all(...bound(statement.parameters));
    step = read.next(want === "row" ? found[0] : found);
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
  return parameters.map((value) => (typeof value === "number" ? BigInt(value) : value)) as never[];
}

/** The steps that look at a table of ours from end to end, not along an index with an end to it. */
function scans({ text, steps }: Plan): readonly string[] {
  return steps.filter(
    (step) =>
      /^SCAN (?!CONSTANT|few|near|newest$|l$|firsts|items|json_each|locked$|owned$|nobodys$|o$|\()/.test(
        step,
      ) && !(/ USING (COVERING )?INDEX /.test(step) && /LIMIT/.test(text)),
  );
}

describe("the plans of reads", () => {
  const folder = new Folder();
  let connection: RawConnection;
  let log: Executions;
  beforeAll(async () => {
    const database = await folder.open();
    log = executions(database, { clock: manualClock(10) });
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
    await create(database, "parked", { at: 5_000 });
    await append(database, "parked", 1, 5_001, {
      kind: "parked",
      code: "C",
      reason: "r",
      codeVersion: null,
    });
    await log.log(child, [{ level: "info", message: "m" }]);
    await log.addBacktraces(root, [{ from: 0, to: 2, stack: "s" }]);
    connection = loadDriver(driverName).open(folder.file(), {
      readOnly: true,
    });
    return async () => {
      connection.close();
      await folder.dispose();
    };
  });

  const expectNoScan = (plans: readonly Plan[]): void => {
    for (const plan of plans) expect([plan.text, scans(plan)]).toEqual([plan.text, []]);
  };

  test("would be noticed if they scanned", () => {
    const whole = sql`SELECT key FROM holdfast_execution WHERE role = 'x' LIMIT 1`;
    const unbounded = sql`SELECT id FROM holdfast_execution ORDER BY id`;
    expect(scans(planOf(connection, whole))).toEqual(["SCAN holdfast_execution"]);
    expect(scans(planOf(connection, unbounded))).toHaveLength(1);
  });

  test("of single reads and of the parts of one execution never scan", () => {
    const limit = 1;
    const after = String(plansOf(connection, log.tree.prepare(root, { limit })()).answer.next);
    const plans = [
      log.get.prepare(root),
      log.created.prepare(root),
      log.result.prepare(child),
      log.lastEvent.prepare(root),
      log.event.prepare(root, 1),
      log.events.prepare(root),
      log.events.prepare(root, {
        newestFirst: true,
        backtraces: true,
        kinds: ["created"],
      }),
      log.responses.prepare(root),
      log.responses.prepare(root, { backward: true }),
      log.logs.prepare(child),
      log.logs.prepare(root, { includeDerived: true }),
      log.tree.prepare(root, { limit }),
      log.tree.prepare(root, { limit, after }),
    ].flatMap((read) => plansOf<unknown>(connection, read()).plans);
    expect(plans.length).toBeGreaterThan(20);
    expectNoScan(plans);
    expect(plans.filter(({ steps }) => steps.some((step) => /TEMP B-TREE/.test(step)))).toEqual([]);
  });

  test("of responses of one set go by number, not by set", () => {
    const read = log.responses.prepare(root, { joinSet: "n:a" });
    const { plans } = plansOf(connection, read());
    expectNoScan(plans);
    expect(plans).toHaveLength(2);
    for (const { steps } of plans.slice(1)) expect(steps[0]).toContain(`${order}response_seq`);
  });

  test("of counts go from key to key", async () => {
    const plans: Plan[] = [];
    const database = {
      clock: manualClock(0),
      entropy: { bytes: (count: number) => new Uint8Array(count) },
      sha256Hex: () => "",
      pause: () => Promise.resolve(),
      write: () => Promise.reject(new Error("Nothing is written")),
      read(read: Operation<unknown, unknown>, input: unknown) {
        const { plans: of, answer } = plansOf(connection, read(input));
        plans.push(...of);
        return Promise.resolve(answer);
      },
    } as unknown as Database;
    const { counts } = await executions(database).count({
      rowsPerSlice: 1_000,
    });
    expect(counts.map(({ count }) => count)).toEqual([1, 2_000, 1, 1, 1]);
    expect(plans).toHaveLength(4);
    for (const { steps } of plans.slice(1))
      expect(steps.join("\n")).toContain(
        "holdfast_execution USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
      );
  });

  test("of reasons look each of them up", async () => {
    const read = log.list.prepare({ status: "parked" });
    const { plans, answer } = plansOf(connection, read());
    expect(answer.items.map(({ id }) => id)).toEqual(["parked"]);
    expectNoScan(plans);
    const reasons = plans.find(({ text }) => text.includes("AS newest"));
    expect(reasons?.steps.join("\n")).toContain(
      `SEARCH q USING INDEX ${order}event_version (execution=?)`,
    );
  });

  test("of backtraces go by their key", () => {
    for (const which of ["first", "last", { version: 1 }] as const) {
      const { plans } = plansOf(connection, log.backtrace.prepare(root, which)());
      expect(plans[1]?.steps).toEqual([
        expect.stringMatching(/^SEARCH r USING PRIMARY KEY \(execution=\?/),
        "SEARCH b USING PRIMARY KEY (hash=?)",
      ]);
    }
  });

  test.each<[string, ListExecutionsOptions]>([
    ["created", {}],
    ["created", { status: "finished" }],
    ["created", { createdFrom: 3, createdTo: 9 }],
    ["created", { tag: "all" }],
    ["created", { idPrefix: "run-" }],
    ["created", { functionPrefix: "bu" }],
    ["function", { function: "bulk" }],
    ["function", { function: "bulk", status: "pending" }],
    ["function", { function: "bulk", tag: "all" }],
    ["function", { function: "bulk", topLevelOnly: true }],
    ["top", { topLevelOnly: true }],
    ["open", { hideFinished: true }],
    ["open", { status: "blocked" }],
    ["open", { status: "pending", topLevelOnly: true }],
    ["result", { status: "timedOut" }],
    ["interrupted", { status: "parked" }],
    ["interrupted", { status: "paused", function: "bulk" }],
    ["interrupted", { status: "cancelling", topLevelOnly: true }],
    ["key", { concurrencyKey: "ada" }],
    ["key", { concurrencyKey: "ada", function: "bulk", codeVersion: "v1" }],
    ["parent", { parent: root }],
  ])("of a list walk along the %s index for %j", (index, filter) => {
    const list = (options: ListExecutionsOptions) =>
      plansOf(connection, log.list.prepare({ ...filter, limit: 1, ...options })());
    const { next, items } = list({}).answer;
    for (const options of [
      {},
      ...(next === undefined ? [] : [{ after: next }]),
      ...items.map((newerThan) => ({ newerThan })),
    ]) {
      const { plans } = list(options);
      expectNoScan(plans);
      const page = plans.find(({ text }) => text.includes("AS near"));
      expect(page?.steps.join("\n")).toMatch(
        new RegExp(` holdfast_execution USING INDEX ${order}${index}\\b`),
      );
    }
  });

  test.each([{}, { function: "bulk" }, { askedBefore: 5 }, { tag: "all" }, { run: "run-1" }])(
    "[RN7] of open questions never scan, for %j",
    (filter) => {
      const { plans } = plansOf(connection, log.questions.prepare({ ...filter, limit: 1 })());
      expectNoScan(plans);
      const page = plans.find(({ text }) => text.includes("AS near"));
      const isFew = "run" in filter;
      expect(page?.steps.join("\n")).toContain(
        isFew
          ? "SEARCH near USING INTEGER PRIMARY KEY"
          : ` holdfast_execution USING INDEX ${order}question`,
      );
    },
  );

  test.each<[string, ListExecutionsOptions]>([
    [`COVERING INDEX ${order}id`, { idPrefix: "root" }],
    ["PRIMARY KEY", { tag: "rare" }],
    [`INDEX ${order}expiry`, { status: "running" }],
    [`INDEX ${order}holder (owner=? AND lease_until>?`, { status: "running" }],
    [`INDEX ${order}function`, { functionPrefix: "orders" }],
  ])("of a list begin with the few rows by %s for %j", (index, filter) => {
    const { plans } = plansOf(connection, log.list.prepare({ ...filter, limit: 1 })());
    expectNoScan(plans);
    const page = plans.find(({ text }) => text.includes("AS near"));
    const steps = page?.steps.join("\n");
    expect(steps).toContain(index);
    expect(steps).toContain("SEARCH near USING INTEGER PRIMARY KEY");
  });
});
