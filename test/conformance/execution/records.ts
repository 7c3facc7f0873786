import { sha256Hex } from "../../../src/host/hash.ts";
import { executionCodec } from "../../../src/model/execution/codec.ts";
import type { Created, ExecutionEvent } from "../../../src/model/execution/event.ts";
import { parseExecutionId } from "../../../src/model/ids/execution-id.ts";
import type { ExecutionId } from "../../../src/model/ids/execution-id.ts";
import { parseFunctionName } from "../../../src/model/ids/function-name.ts";
import { parseExecutorId, parseRunId } from "../../../src/model/ids/prefixed-id.ts";
import type { ExecutionResult } from "../../../src/model/execution/result.ts";
import { unlimitedRetryPolicy } from "../../../src/model/time/retry-policy.ts";
import { valueCodec } from "../../../src/model/values/value-codec.ts";
import { appendEvents } from "../../fixtures/execution-operations.ts";
import { createExecution } from "../../fixtures/execution-operations.ts";
import type { NewExecution } from "../../../src/stores/execution/log/create.ts";
import type { Database } from "../../../src/sql/database.ts";

/** Executions as tests of reads need them: written by the operations that write them. */

export const codec = executionCodec(valueCodec({ sha256Hex }));

export const id = (text: string): ExecutionId => parseExecutionId(text);

export const run = parseRunId("Run_01HF7YAT00ABCDEFGHJKMNPQRS");

export interface Given extends Partial<Omit<Created, "function" | "input">> {
  readonly at?: number;
  readonly function?: string;
  readonly input?: unknown;
}

/** A workflow "orders/fulfil" created at 0 and due at once, unless told otherwise. */
export function newExecution(name: string, given: Given = {}): NewExecution {
  const { at = 0, function: functionName, input, ...created } = given;
  return {
    id: id(name),
    at,
    created: {
      kind: "created",
      role: "workflow",
      function: parseFunctionName(functionName ?? "orders/fulfil"),
      ...codec.input(input ?? null),
      scheduledAt: at,
      deadlineAt: null,
      concurrencyKey: null,
      codeVersion: null,
      isPaused: false,
      scheduledBy: null,
      forkedFrom: null,
      metadata: {},
      tags: [],
      ...created,
    },
  };
}

export async function create(
  database: Database,
  name: string,
  given: Given = {},
): Promise<ExecutionId> {
  await database.write(createExecution, newExecution(name, given));
  return id(name);
}

/** Many at once, in one transaction. */
export async function createMany(
  database: Database,
  executions: readonly NewExecution[],
): Promise<void> {
  // Those that a set may take are few statements on Postgres.
  const plain = executions.filter(({ created }) => created.tags.length === 0);
  const tagged = executions.filter(({ created }) => created.tags.length > 0);
  await Promise.all(plain.map((execution) => database.write(createExecution, execution)));
  await database.write("createMany", function* () {
    for (const execution of tagged) yield* createExecution(execution);
  });
}

export async function append(
  database: Database,
  name: string,
  version: number,
  at: number,
  ...events: readonly ExecutionEvent[]
): Promise<void> {
  await database.write(appendEvents, { id: id(name), version, at, events });
}

export async function finish(
  database: Database,
  name: string,
  at: number,
  result: ExecutionResult,
): Promise<void> {
  await append(database, name, 1, at, codec.finished(result));
}

/** Locked by some worker until `leaseUntil`. */
export function locked(leaseUntil: number): ExecutionEvent {
  return {
    kind: "locked",
    holder: {
      executor: parseExecutorId("Exr_01HF7YAT00ABCDEFGHJKMNPQRS"),
      run,
      owner: null,
    },
    leaseUntil,
    retry: unlimitedRetryPolicy,
    codeVersion: null,
  };
}

/** A history event that changes nothing but the version. */
export function patched(patch: string): ExecutionEvent {
  return { kind: "patched", patch, call: 0, seen: 0 };
}
