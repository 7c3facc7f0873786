import { expect, test } from "vitest";
import { delayId, splitDelayId } from "../../src/model/ids/delay-id.ts";
import type { Duration } from "../../src/model/time/durations.ts";
import { childId, parseExecutionId } from "../../src/model/ids/execution-id.ts";
import type { ExecutionId } from "../../src/model/ids/execution-id.ts";
import { parseFunctionName } from "../../src/model/ids/function-name.ts";
import type { IdSource } from "../../src/model/ids/id-source.ts";
import { namedJoinSet } from "../../src/model/ids/join-set-id.ts";
import { parseExecutorId, parseRunId } from "../../src/model/ids/prefixed-id.ts";
import type { ExecutorId, RunId } from "../../src/model/ids/prefixed-id.ts";

const ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

function lock(execution: ExecutionId, executor: ExecutorId, run: RunId): void {
  void [execution, executor, run];
}

test("ids in each other's place do not compile", () => {
  const execution = parseExecutionId("order-42");
  const executor = parseExecutorId(`Exr_${ulid}`);
  const run = parseRunId(`Run_${ulid}`);
  lock(execution, executor, run);
  // @ts-expect-error: an executor is not an execution.
  lock(executor, executor, run);
  // @ts-expect-error: executor and run are swapped.
  lock(execution, run, executor);
  // @ts-expect-error: text becomes an id only by parsing.
  lock("order-42", executor, run);
  // @ts-expect-error: a function's name is not an id.
  lock(parseFunctionName("orders/fulfil"), executor, run);
  expect([execution, executor, run]).toEqual(["order-42", `Exr_${ulid}`, `Run_${ulid}`]);
});

test("children and delays are built from the right parts, and are not one another", () => {
  const execution = parseExecutionId("order-42");
  const joinSet = namedJoinSet("payments");
  const delay = delayId(execution, joinSet, 1);
  // @ts-expect-error: join set and parent are swapped.
  childId(joinSet, execution, 1);
  // @ts-expect-error: a delay has no children.
  childId(delay, joinSet, 1);
  // @ts-expect-error: a child is not a delay.
  splitDelayId(childId(execution, joinSet, 1));
  expect(splitDelayId(delay).execution).toBe(execution);
});

test("an id is text wherever text is wanted", () => {
  const text: string = parseExecutionId("order-42");
  expect(text).toBe("order-42");
});

test("minting gives the id of the prefix, and knows no other prefixes", () => {
  const uses = (ids: IdSource): void => {
    lock(ids.nextId("E"), ids.nextId("Exr"), ids.nextId("Run"));
    // @ts-expect-error: a run id is not an execution id.
    lock(ids.nextId("Run"), ids.nextId("Exr"), ids.nextId("Run"));
    // @ts-expect-error: delays are derived from executions, never minted.
    ids.nextId("Delay");
  };
  expect(uses).toBeTypeOf("function");
});

test("durations are checked as they are typed", () => {
  const good: Duration[] = [5, "500ms", "1.5 h", "2 days", "1 week"];
  // @ts-expect-error: months have no fixed length.
  const month: Duration = "1 month";
  // @ts-expect-error: the unit is missing.
  const bare: Duration = "500";
  expect([...good, month, bare]).toHaveLength(7);
});
