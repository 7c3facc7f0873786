import { childId, parseExecutionId } from "../../src/model/ids/execution-id.ts";
import type { ExecutionId } from "../../src/model/ids/execution-id.ts";
import { parseFunctionName } from "../../src/model/ids/function-name.ts";
import type { GivenEvent } from "../../src/model/execution/given-event.ts";
import { delayId } from "../../src/model/ids/delay-id.ts";
import type { ManualClock } from "../../src/model/time/clock.ts";
import { idSource } from "../../src/model/ids/id-source.ts";
import { namedJoinSet } from "../../src/model/ids/join-set-id.ts";
import type { OwnerId } from "../../src/model/ids/prefixed-id.ts";
import type { PayloadCodec } from "../../src/model/values/payload-codec.ts";
import { artifacts, blobKinds, blobs } from "../../src/blobs.ts";
import { awaitEvents, effects } from "../../src/effects.ts";
import type { StreamWrite } from "../../src/model/execution/stream.ts";
import { storeContext } from "../../src/stores/context.ts";
import type { LockedExecution } from "../../src/stores/execution/lock/locked.ts";
import { writeStream } from "../../src/stores/stream/write.ts";
import { executions } from "../../src/executions.ts";
import { processes } from "../../src/processes.ts";
import { attachments, leases, queue, sessions } from "../../src/sessions.ts";
import { schedules, triggers } from "../../src/triggers.ts";
import type { QueueClaimRef } from "../../src/sessions.ts";
import type { QueueSource } from "../../src/stores/queue/batch-row.ts";
import type { Tx } from "../../src/sql/operation.ts";
import type { Database } from "../../src/sql/database.ts";
import { executionContext } from "../../src/stores/execution/context.ts";
import { newTerms } from "../../src/stores/schedule/parts.ts";
import { putRunSchedule } from "../../src/stores/schedule/runs/change.ts";
import { fireNow } from "../../src/stores/schedule/runs/start.ts";
import { setMoveMark } from "../../src/sql/move-mark.ts";
import { registerOwner } from "../../src/stores/owner/owner.ts";
import { bytesOf } from "./blob/owners.ts";

/** A process on another machine. */
const elsewhere = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAV" as OwnerId;

/** Puts rows into every table, each written by the store that it belongs to. */
export async function writeEveryRow(
  database: Database,
  clock: ManualClock,
  payload?: PayloadCodec,
): Promise<void> {
  const environment = { clock, ...(payload && { payload }) };
  await database.write(registerOwner, {
    owner: elsewhere,
    host: "elsewhere",
    now: clock.now(),
  });
  await database.write(setMoveMark, {
    move: "m1",
    state: "arrived",
    at: clock.now(),
    report: null,
  });
  await database.setUp("shop", [{ name: "0001", up: () => noTable() }]);
  await writeExecutions(database, clock, environment);
  await writeRemoved(database, environment);
  await writeSession(database, environment);
  await writeBytes(database);
  await writeProcesses(database, environment);
  await writeEffects(database, environment);
  await writeRunSchedule(database, environment);
  await writeTriggers(database, clock, environment);
}

/** What an app does is not ours to check. */
function* noTable(): Tx<void> {}

interface Environment {
  readonly clock: ManualClock;
  readonly payload?: PayloadCodec;
}

async function writeExecutions(
  database: Database,
  clock: ManualClock,
  environment: Environment,
): Promise<void> {
  const log = executions(database, environment);
  const ids = idSource({ clock, entropy: database.entropy });
  const holder = { executor: ids.nextId("Exr"), run: ids.nextId("Run") };
  const terms = { holder, lease: "1h", limit: 1 } as const;
  await log.create({
    id: "order",
    function: "shop/order",
    input: { cents: 500 },
    tags: ["blue"],
    concurrencyKey: "k",
  });
  const served = [{ name: "shop/order", concurrencyMax: 5 }];
  const [order] = (await log.lockPending({ ...terms, functions: served })).locked;
  if (order === undefined) throw new Error("Nothing is due.");
  const { child, events } = requests(order.id, clock.now());
  const { nextVersion } = await log.append(order.id, order.nextVersion, events, {
    fence: holder,
    children: [{ id: child, function: "shop/pay", input: { cents: 500 } }],
  });
  await log.setProgress("order", { percent: 50 });
  await log.signal("order", "go", { by: "ada" }, { key: "g" });
  clock.advance(1);
  await log.expireTimers();
  const [pay] = (await log.lockPending({ ...terms, functions: ["shop/pay"] })).locked;
  if (pay === undefined) throw new Error("Nothing is due.");
  const result = { kind: "completed", value: "paid" } as const;
  await log.finish(pay.id, pay.nextVersion, result, { fence: holder });
  await log.log("order", [{ level: "info", message: "hello", data: [1] }]);
  await log.addBacktraces("order", [{ from: 0, to: 1, stack: "at a.ts:1" }]);
  await log.append(order.id, nextVersion, [{ kind: "patched", patch: "p" }]);
  await log.fork("order", nextVersion - 1, { id: "copy" });
  await writeOutput(database, environment, order, holder);
}

async function writeOutput(
  database: Database,
  environment: Environment,
  { id, key: execution }: Pick<LockedExecution, "id" | "key">,
  fence: StreamWrite["fence"],
): Promise<void> {
  const context = storeContext(database, environment);
  const payload = context.encode(["a", "b"]);
  const attempt = { continuation: 0, call: 1, step: "step", attempt: 1, isFirst: true };
  const parts = [{ ...attempt, chunks: 2, size: payload.length, at: 1, payload }];
  const nothing = { lockVersion: 1, after: 0, lost: 0, dropped: 0, folded: [] };
  const input = { execution, id, fence, ...nothing, parts };
  await database.write(writeStream(context), input);
}

/** A child, a delay that ends soon and one that does not, and a step. */
function requests(
  id: ExecutionId,
  now: number,
): { readonly child: ExecutionId; readonly events: readonly GivenEvent[] } {
  const joinSet = namedJoinSet("set");
  const child = childId(id, joinSet, 1);
  const delays = [1, 1e9].map((ms, index): GivenEvent => ({
    kind: "delayRequested",
    joinSet,
    delay: delayId(id, joinSet, index + 1),
    expiresAt: now + ms,
    startAt: { in: ms },
  }));
  const childRequested: GivenEvent = {
    kind: "childRequested",
    joinSet,
    child,
    function: parseFunctionName("shop/pay"),
  };
  const stepFinished: GivenEvent = {
    kind: "stepFinished",
    name: "step",
    input: 1,
    outcome: "completed",
    value: { n: 2 },
    ran: [-301, -2],
  };
  return {
    child,
    events: [{ kind: "joinSetCreated", joinSet }, childRequested, ...delays, stepFinished],
  };
}

async function writeSession(database: Database, environment: Environment): Promise<void> {
  const store = sessions(database, environment);
  const inbox = queue(database, environment);
  const chat = await store.create("chat", { name: "Trip" });
  const fence = await leases(database, environment).waitForLease(chat, {
    owner: "ada",
    incarnation: "1",
  });
  const put = attachments(database, { clock: environment.clock });
  const { id } = await put.put(chat, bytesOf("picture"), {
    mediaType: "image/png",
  });
  const take = async (source: QueueSource): Promise<QueueClaimRef> => {
    const items = [{ kind: "input", payload: { from: source } }];
    const queued = await inbox.enqueue(chat, { source, items });
    if (queued.kind === "consumed") throw new Error("It was consumed.");
    const claimed = await inbox.claimBatches(fence, [queued.batch.id]);
    if (claimed === undefined) throw new Error("It is not to be had.");
    return claimed.ref;
  };
  const first = await take("first");
  await store.commit(chat, {
    turn: "t1",
    fence,
    claims: [first],
    nodes: [
      { id: "n1", kind: "message", role: "user", payload: { text: "hi" } },
      { id: "n2", kind: "message", role: "assistant", payload: "hello" },
      { id: "n3", kind: "message", role: "assistant", payload: "hello?" },
    ],
    components: { plan: { version: 1, value: { city: "Oslo" } } },
    frames: [{ id: "f", reason: "start", data: { a: 1 }, state: { s: 1 } }],
    currentFrame: "f",
    config: { model: "small" },
    usage: [{ source: "chat", model: "m", inputTokens: 4, outputTokens: 2 }],
    attachments: [id],
  });
  await store.tombstone(chat, ["n2"], { fence });
  await store.fork(chat, "fork");
  const wake = await take({ process: "elsewhere", sequence: 3 });
  await inbox.completeWithoutCommit(fence, [wake]);
  await take("third");
}

async function writeBytes(database: Database): Promise<void> {
  await artifacts(database).put("space", "name", bytesOf("artifact"));
  const store = blobs(database);
  const { hash } = await store.put(bytesOf("kept"));
  await store.keep(hash, "invoice/7");
}

async function writeProcesses(database: Database, environment: Environment): Promise<void> {
  const store = processes(database, environment);
  const { hash } = await blobs(database).put(bytesOf("plugins"), {
    kind: blobKinds.processEnvironment,
  });
  await store.register({
    id: "build",
    kind: "tool",
    label: "the build",
    environment: hash,
    input: { branch: "main" },
    wakeTarget: "chat",
    eventTypes: [
      {
        name: "progress",
        wake: { input: { kind: "constant", value: "on" } },
      },
    ],
  });
  await store.grant("build", "chat", { label: "mine" });
  await store.claim("build", { owner: "ada", incarnation: "1" });
  await store.append("build", { type: "progress", payload: { percent: 5 } });
  await store.spawn({
    id: "deploy",
    kind: "workflow",
    execution: { function: "ci/deploy", input: { branch: "main" } },
    grants: [{ scope: "chat" }],
  });
  const log = executions(database, environment);
  const { clock } = environment;
  const ids = idSource({ clock, entropy: database.entropy });
  const holder = { executor: ids.nextId("Exr"), run: ids.nextId("Run") };
  const locked = { functions: ["ci/deploy"], lease: "1h", limit: 1 } as const;
  const [run] = (await log.lockPending({ ...locked, holder })).locked;
  if (run === undefined) throw new Error("Nothing is due.");
  const result = { kind: "completed", value: { url: "/v7" } } as const;
  await log.finish(run.id, run.nextVersion, result, { fence: holder });
}

const turn = { kind: "turn", session: "chat", id: "t1" } as const;

async function writeEffects(database: Database, environment: Environment): Promise<void> {
  const outside = effects(database, environment);
  const envelope = (input: unknown) => ({ kind: "llm", input });
  await outside.execute(turn, "ask", envelope({ prompt: "a" }), () => ({
    answer: 1,
  }));
  await outside
    .execute(turn, "fail", envelope({ prompt: "b" }), () => {
      throw new TypeError("no");
    })
    .catch(() => undefined);
  const awaited = awaitEvents(database, environment);
  for (const [key, answer] of [
    ["yes", (token: string) => awaited.resolve(token, { agreed: true })],
    ["no", (token: string) => awaited.fail(token, new RangeError("no"))],
  ] as const)
    await answer((await awaited.open(turn, key)).token);
  await awaited.open({ kind: "operation", id: "o" }, "open");
}

async function writeTriggers(
  database: Database,
  clock: ManualClock,
  environment: Environment,
): Promise<void> {
  const rules = triggers(database, environment);
  const source = { type: "webhook", key: "github" };
  const schema = { type: "object", required: ["branch"] } as const;
  await rules.subscribe({
    key: "push",
    registrant: "chat",
    source,
    target: { kind: "tool" },
    payloadSchema: schema,
  });
  await rules.subscribe({
    key: "hourly",
    source: { every: "1h" },
    target: { kind: "report" },
  });
  await rules.record({ key: "1", source, payload: { branch: "main" } });
  await rules.record({ key: "2", source, payload: { odd: true } });
  await schedules(database, environment).put("mine", "daily", {
    cron: "0 9 * * *",
  });
  const fired = new Promise<void>((resolve) => {
    const scheduler = rules.run({
      onFired: () => void scheduler.close().then(resolve),
    });
  });
  clock.advance(60 * 60 * 1_000);
  await fired;
}

/** A schedule of the runtime, with a run that it has started. */
async function writeRunSchedule(database: Database, environment: Environment): Promise<void> {
  const context = executionContext(database, environment);
  const at = environment.clock.now();
  const name = "nightly";
  await database.write(putRunSchedule(context), {
    name,
    role: "workflow",
    function: "report",
    overlap: "skip",
    ...context.values.input({ days: 1 }),
    terms: newTerms({ cron: "0 9 * * *" }, at),
  });
  const run = parseExecutionId("nightly@fire:1");
  await database.write(fireNow(context), { name, run, at });
}

/** What is deleted, pruned or forgotten leaves tombstones and gaps that are no damage. */
async function writeRemoved(database: Database, environment: Environment): Promise<void> {
  const store = processes(database, environment);
  await sessions(database, environment).create("gone");
  await store.register({ id: "old", kind: "tool", label: "old", input: 1 });
  await store.grant("old", "gone");
  await store.register({ id: "orphan", kind: "tool" });
  await store.grant("orphan", "gone");
  await store.complete("old", { kind: "completed", value: 1 });
  await store.prune({ olderThan: 0 });
  await sessions(database, environment).delete("gone");
}
