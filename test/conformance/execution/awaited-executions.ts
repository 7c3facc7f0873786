import type { Created, Holder } from "../../../src/model/execution/event.ts";
import type { ExecutionId } from "../../../src/model/ids/execution-id.ts";
import type { FunctionName } from "../../../src/model/ids/function-name.ts";
import type { ExecutorId, RunId } from "../../../src/model/ids/prefixed-id.ts";
import type { Database } from "../../../src/sql/database.ts";
import { appendEvents } from "../../fixtures/execution-operations.ts";
import { createExecution } from "../../fixtures/execution-operations.ts";
import { addResponse } from "../../../src/stores/execution/log/respond.ts";
import { lockedRecord } from "../../../src/stores/execution/state-row.ts";
import type { Tx } from "../../../src/sql/operation.ts";
import { codec } from "./records.ts";
import { newExecutionOf } from "../../fixtures/execution-parts.ts";

/** Executions as the tests of waits and timers need them. */

export const mail: FunctionName = "mail/send" as FunctionName;
export const tax: FunctionName = "tax/compute" as FunctionName;

export const holder: Holder = {
  executor: "Exr_01ARZ3NDEKTSV4RRFFQ69G5FAV" as ExecutorId,
  run: "Run_01ARZ3NDEKTSV4RRFFQ69G5FAV" as RunId,
  owner: null,
};

export const retry = { maxRetries: 5, backoffMs: 100, backoffMaxMs: 60_000 };

export function executionId(text: string): ExecutionId {
  return text as ExecutionId;
}

export async function create(
  database: Database,
  id: string,
  fields: Partial<Created> = {},
): Promise<void> {
  const execution = newExecutionOf(id, {
    at: 0,
    function: mail,
    input: "input",
  });
  await database.write(createExecution, {
    ...execution,
    created: { ...execution.created, ...fields },
  });
}

/** Ends an execution to which nothing else has happened. */
export async function finish(
  database: Database,
  id: string,
  value: unknown = "done",
): Promise<void> {
  await database.write(appendEvents, {
    id: executionId(id),
    version: 1,
    at: 0,
    events: [codec.finished({ kind: "completed", value })],
  });
}

/** Lets an execution to which nothing else has happened wait for any response. */
export async function block(database: Database, id: string): Promise<void> {
  await database.write(appendEvents, {
    id: executionId(id),
    version: 1,
    at: 0,
    events: [{ kind: "waiting", call: 0, seen: 0, runExpiresAt: 0, wakeAt: null }],
  });
}

/** A signal named "go" whose key tells it from others. */
export function* sendSignal(id: string, key: string): Tx<void> {
  const record = yield* lockedRecord(executionId(id));
  yield* addResponse(record, {
    at: 0,
    kind: "signal",
    inbox: "s:go",
    source: `s:go:${key}`,
    outcome: "sent",
    child: null,
    finishedVersion: null,
    valueHash: codec.hash(key),
    payload: codec.value(key),
  });
}
