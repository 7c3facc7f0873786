import { expect, test } from "vitest";
import { rows, type Tx, sql, type Statement } from "../../src/kernel.ts";
import { earliestDue } from "../../src/stores/execution/lock/lockable.ts";
import {
  earliestTimer,
  expiredTimers,
  findLockable,
  finishedTrees,
} from "../fixtures/execution-operations.ts";
import { mail, tax } from "../conformance/execution/awaited-executions.ts";
import { withFolder } from "./place.ts";

/** The statements of a body that is told that there is nothing. */
function driveToStatements(body: Tx<unknown>): readonly Statement[] {
  const found: Statement[] = [];
  for (let step = body.next(); step.done !== true;) {
    const { statement, want } = step.value;
    if (statement !== undefined) found.push(statement);
    step = body.next(want === "rows" ? [] : undefined);
  }
  return found;
}

const at = { at: 5, limit: 100 };
const after = { expiresAt: 3, kind: "lock", id: "a" } as const;
const dueIndexes = ["holdfast_execution_new", "holdfast_execution_begun"];
const timerIndexes = [
  "holdfast_execution_delay_expiry",
  "holdfast_execution_expiry",
  "holdfast_execution_deadline",
];

test.each([
  ["earliestDue", driveToStatements(earliestDue([mail, tax])), dueIndexes],
  [
    "findLockable",
    driveToStatements(
      findLockable.one({
        functions: [{ name: mail, concurrencyMax: 1 }, { name: tax }],
        now: 5,
        walkAfter: new Map(),
        codeVersion: "v1",
        suspects: "overdue",
      }),
    ),
    [
      "holdfast_execution_lane",
      "holdfast_execution_suspect",
      ...dueIndexes,
      "holdfast_execution_running",
      ...dueIndexes.toReversed(),
      ...dueIndexes,
    ],
  ],
  ["earliestTimer", driveToStatements(earliestTimer.one(undefined)), timerIndexes],
  [
    "finishedTrees",
    driveToStatements(
      finishedTrees.one({
        function: mail,
        after: { finishedAt: 3, id: "a" },
        upTo: { finishedAt: 9, id: "b" },
        limit: 100,
      }),
    ),
    ["holdfast_execution_retention"],
  ],
  ["expiredTimers", driveToStatements(expiredTimers.one(at)), timerIndexes],
  ["a later page", driveToStatements(expiredTimers.one({ ...at, after })), timerIndexes],
])("%s reads the front of its indexes and sorts nothing", (_, statements, indexes) =>
  withFolder(async (folder) => {
    const database = await folder.open();
    const plan: string[] = [];
    for (const statement of statements) {
      const steps = await database.write("plan", () =>
        rows<{ detail: string }>(sql`EXPLAIN QUERY PLAN ${statement}`),
      );
      plan.push(...steps.map(({ detail }) => detail));
    }
    const used = plan.flatMap((detail) => / INDEX (holdfast_\w+)/.exec(detail)?.[1] ?? []);
    expect(used).toEqual(indexes);
    // A scan of an index is stopped by its LIMIT; one of a table, or a sort, is not.
    expect(plan.filter((detail) => detail.includes("TEMP B-TREE"))).toEqual([]);
    expect(plan.filter((detail) => /^SCAN (?!(held|begun|fresh)$)\w+$/.test(detail))).toEqual([]);
  }),
);
