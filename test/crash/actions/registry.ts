import type { Database } from "../../../src/kernel.ts";
import type { AnswerReply } from "../../../src/index.ts";
import { type AppendOutcome, executions } from "../../../src/executions.ts";
import {
  type AppendedProcessEvent,
  processes,
  type SpawnedProcess,
} from "../../../src/processes.ts";
import type { Orders } from "../prepare-actions.ts";

const found = { type: "found", payload: "two bugs", replayKey: "k" };

export function append(database: Database): Promise<AppendedProcessEvent> {
  return processes(database).append("p", found);
}

export function spawn(database: Database): Promise<SpawnedProcess<unknown>> {
  return processes(database).spawn({
    id: "build",
    kind: "workflow",
    wakeTarget: "chat",
    execution: { function: "ci/build", input: 1 },
    grants: [{ scope: "chat" }],
  });
}

const result = { kind: "completed", value: 7 } as const;

export async function resolve(database: Database): Promise<{ readonly kind: string }> {
  return { kind: await executions(database).resolve("run", result) };
}

export function ask(database: Database): Promise<AnswerReply> {
  return executions(database).answer("asks.o:1_1", { approve: true });
}

export function finish(database: Database, { version, holder }: Orders): Promise<AppendOutcome> {
  const fence = { fence: holder };
  return executions(database).finish("job", version, result, fence);
}

/** Four transactions. Nobody can do it again once it is done. */
export async function work(
  database: Database,
): Promise<{ readonly fence: number; readonly attempts: number }> {
  const store = processes(database);
  const outcome = await store.claim("p", worker(database));
  if (outcome.kind === "busy") throw new Error("Nobody else works on it.");
  const fence = outcome.lease;
  const attempts = await store.start(fence);
  await store.append("p", { ...found, fence });
  await store.complete("p", result, { fence });
  return { fence: fence.fence, attempts };
}

export function worker({ owner }: Database): {
  readonly owner: string;
  readonly incarnation: string;
} {
  return { owner: "worker", incarnation: owner };
}
