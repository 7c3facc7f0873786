import { expect, test } from "vitest";
import { rows, type Tx, sql, type Statement } from "../../src/kernel.ts";
import type { Processes } from "../../src/processes.ts";
import { dueSchedules } from "../../src/stores/schedule/fire.ts";
import { removeOwned } from "../../src/stores/removal.ts";
import { triggersOwned } from "../../src/stores/trigger/subscription-row.ts";
import { deliveriesOf } from "../../src/stores/trigger/occurrence-row.ts";
import { occurrenceList } from "../../src/stores/trigger/read-occurrences.ts";
import { subscriptionList } from "../../src/stores/trigger/read-subscriptions.ts";
import { recordOccurrence } from "../../src/stores/trigger/record.ts";
import { removeOccurrenceSlice } from "../../src/stores/trigger/retention.ts";
import { planContext } from "../fixtures/plan-context.ts";
import { withFolder } from "./place.ts";

const found = {
  key: 1,
  session: 0,
  name: "a",
  recorded_at: 1,
  is_busy: 0,
  payload: "1",
};

/** The statements of a body whose first question is answered with a row. */
function statementsOf(body: Tx<unknown>): readonly Statement[] {
  const asked: Statement[] = [];
  for (let step = body.next(); step.done !== true;) {
    const { statement, want } = step.value;
    if (statement !== undefined) asked.push(statement);
    const answer = asked.length === 1 ? [found] : [];
    step = body.next(want === "rows" ? answer : want === "run" ? 0 : answer[0]);
  }
  return asked;
}

const source = { type: "t", key: "k" };
const context = {
  ...planContext,
  hash: () => "hash",
  processes: {} as Processes,
};

/** The first page of a list. */
function first(filter: object) {
  return { filter, owner: "", after: undefined, limit: 9 };
}

const questions: readonly [string, () => Tx<unknown>, readonly string[]][] = [
  [
    "the question what is due",
    () => dueSchedules.one({ kinds: ["a", "b"], now: 5, limit: 9 }),
    ["holdfast_schedule_due", "holdfast_schedule_due"],
  ],
  [
    "a list of subscriptions",
    () => subscriptionList.operation(context).one(first({ registrant: null })),
    ["holdfast_trigger_subscription_name", "holdfast_trigger_subscription_name"],
  ],
  [
    "a list of subscriptions by the definition of their target",
    () => subscriptionList.operation(context).one(first({ definition: "d" })),
    ["holdfast_trigger_subscription_definition", "holdfast_trigger_subscription_definition"],
  ],
  [
    "a list of occurrences of a source",
    () => occurrenceList.operation(context).one(first({ source })),
    ["holdfast_trigger_occurrence_source", "holdfast_trigger_occurrence_source"],
  ],
  ["the question what was delivered", () => deliveriesOf([1]), []],
  [
    "a slice of old occurrences",
    () =>
      removeOccurrenceSlice.one({
        before: 9,
        after: { recordedAt: 0, key: 0 },
        rowsMax: 9,
      }),
    ["holdfast_trigger_occurrence_age", "holdfast_process_id"],
  ],
  [
    "a slice of what a session leaves",
    () => removeOwned(triggersOwned, 1, 9),
    [
      "holdfast_trigger_subscription_name",
      "holdfast_schedule_name",
      "holdfast_trigger_occurrence_source",
      "holdfast_trigger_delivery_subscription",
    ],
  ],
  [
    "the recording of an occurrence",
    () =>
      recordOccurrence(context).one({
        key: "o",
        source,
        payload: { encoded: "1" as never, hash: "h" },
        occurredAt: 1,
        at: 1,
      }),
    ["holdfast_trigger_subscription_source", "holdfast_trigger_subscription_source"],
  ],
];

test("every question reads by its indexes", () =>
  withFolder(async (folder) => {
    const database = await folder.open();
    for (const [name, body, indexes] of questions) {
      const plan: string[] = [];
      for (const statement of statementsOf(body())) {
        const steps = await database.write("plan", () =>
          rows<{ detail: string }>(sql`EXPLAIN QUERY PLAN ${statement}`),
        );
        plan.push(...steps.map(({ detail }) => detail));
      }
      const used = plan.flatMap((detail) => / INDEX (holdfast_\w+)/.exec(detail)?.[1] ?? []);
      expect([name, used]).toEqual([name, indexes]);
      expect(plan.filter((detail) => /^SCAN holdfast_\w+$/.test(detail))).toEqual([]);
    }
  }));
