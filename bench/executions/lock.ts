import { join } from "node:path";
import { sha256Hex } from "../../src/host/hash.ts";
import { openSqlite } from "../../src/sqlite.ts";
import { executionCodec } from "../../src/model/execution/codec.ts";
import { valueCodec } from "../../src/model/values/value-codec.ts";
import { executions } from "../../src/stores/execution/executions.ts";
import type { Executions } from "../../src/stores/execution/executions.ts";
import { holder } from "../../test/fixtures/execution-parts.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { insertExecutions, numbers, seeded } from "./seed.ts";
import type { SeededState } from "./seed.ts";
import { size } from "../sizes.ts";

const few = size(1_000, 100);
const many = size(1_000_000, 1_000);
const atOnce = 10;
const rounds = size(80, 2);

/** A lock reads the input and compares its hash. */
const { inputHash } = executionCodec(valueCodec({ sha256Hex })).input(null);

const createdBody = JSON.stringify({
  role: "workflow",
  function: "bench/steps",
  inputHash,
  scheduledAt: 0,
  deadlineAt: null,
  concurrencyKey: null,
  codeVersion: null,
  isPaused: false,
  scheduledBy: null,
  forkedFrom: null,
  metadata: {},
  tags: [],
});

/** Does locking ten of a long queue cost what locking ten of a short one costs? */
export function lock(): Promise<object> {
  return inScratch(async (folder) => {
    const inOrder = await compareQueues(folder, "dueInOrder");
    const scattered = await compareQueues(folder, "dueScattered");
    return {
      value: rounded(inOrder.ofMany),
      unit: `ms to lock ${atOnce} of 1,000,000`,
      ceiling: rounded(inOrder.ofFew),
      ratio: rounded(inOrder.ofMany / inOrder.ofFew),
      scatteredRatio: rounded(scattered.ofMany / scattered.ofFew),
      rounds,
      note: "ceiling is the same with 1,000 pending; aim ≤ 1.5; scattered: due in another order than created, so each row is on a page of its own",
    };
  });
}

async function compareQueues(
  folder: string,
  state: SeededState,
): Promise<{ readonly ofFew: number; readonly ofMany: number }> {
  const queues = [];
  for (const pending of [few, many]) {
    const path = join(folder, `${state}-${pending}.db`);
    await seeded(path, [
      insertExecutions(pending, 0, state),
      `${numbers(pending)}
      INSERT INTO holdfast_execution_event (execution, version, at, responses, kind, call, seen, body, payload)
      SELECT i, 0, 0, 0, 'created', 0, 0, '${createdBody}', 'null' FROM numbers`,
    ]);
    // Acknowledged at COMMIT, so that the flush does not hide the difference.
    const database = await openSqlite(path, { durability: "normal" });
    queues.push({ database, log: executions(database), ms: [] as number[] });
  }
  for (let round = 0; round < rounds; round += 1)
    for (const { log, ms } of queues) ms.push(await lockTen(log));
  for (const { database } of queues) await database.close();
  const [ofFew = Number.NaN, ofMany = Number.NaN] = queues.map(({ ms }) => median(ms));
  return { ofFew, ofMany };
}

async function lockTen(log: Executions): Promise<number> {
  const startedMs = performance.now();
  const { locked } = await log.lockPending({
    functions: ["bench/steps"],
    limit: atOnce,
    holder,
    lease: "1 hour",
  });
  const elapsedMs = performance.now() - startedMs;
  if (locked.length !== atOnce) throw new Error("Too few were locked.");
  return elapsedMs;
}
