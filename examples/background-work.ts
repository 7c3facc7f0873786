import { HoldfastError } from "holdfast";
import { openSqlite } from "holdfast/sqlite";
import { executions } from "holdfast/executions";
import { idSource } from "holdfast/kernel";
import { processes } from "holdfast/processes";
import { queue, sessions } from "holdfast/sessions";
import type { WakePayload } from "holdfast/processes";

const database = await openSqlite(":memory:");
const registry = processes(database);
const inbox = queue(database);
const chat = await sessions(database).create("chat-7");

// A session starts background work, and will get a message with its outcome.
const percent = { type: "integer" } as const;
const outcome = { kind: "pointer", pointer: "/output/value" } as const;
const build = {
  id: "build-7",
  kind: "tool",
  wakeTarget: "chat-7",
  input: { branch: "main" },
  eventTypes: [
    { name: "progress", schema: { type: "object", properties: { percent } } },
    { name: "process.completed", wake: { input: outcome } },
  ],
} as const;
await registry.register(build);
await registry.grant("build-7", chat, { label: "the build" });
console.log("again:", (await registry.register(build)).existed);

// A worker finds unclaimed work. While it holds the lease, no other caller can end it.
const worker = { owner: "worker-a", incarnation: "1" };
const [todo] = (await registry.worklist()).items;
console.log(todo?.process.id, todo?.recovery);
const claimed = await registry.claim("build-7", worker, { lease: "1h" });
if (claimed.kind !== "acquired") throw new Error("Another worker has it.");
const fence = claimed.lease;
await registry.start(fence);

// Payloads are checked against the declared schema.
try {
  const payload = { percent: "half" };
  await registry.append("build-7", { type: "progress", payload, fence });
} catch (error) {
  if (!(error instanceof HoldfastError)) throw error;
  console.log(error.code, error.details["path"]);
}

// One transaction ends the process and wakes the session. Repeating the call changes nothing.
const woken = inbox.waitForWork(chat);
for (const attempt of [1, 2]) {
  const output = { kind: "completed", value: "All tests pass." } as const;
  const end = await registry.complete("build-7", output, { fence });
  console.log(`end ${attempt}:`, end.status, end.isReplay);
}
await woken;

// A spawned process is also a run. A worker runs it, and the process ends with the run.
await registry.spawn({
  id: "deploy-7",
  kind: "workflow",
  wakeTarget: "chat-7",
  execution: { function: "ci/deploy", input: { branch: "main" } },
  grants: [{ scope: chat }],
});
const ids = idSource(database);
const [run] = (
  await executions(database).lockPending({
    functions: ["ci/deploy"],
    holder: { executor: ids.nextId("Exr"), run: ids.nextId("Run") },
    lease: "30s",
    limit: 1,
  })
).locked;
if (run === undefined) throw new Error("Nothing is due.");
const result = { kind: "completed", value: { url: "/v7" } } as const;
await executions(database).finish(run.id, run.nextVersion, result);
console.log(await registry.waitForEnd("deploy-7"));

// The session got one message for each of the two.
for (const { items } of (await inbox.list(chat)).items)
  for (const { payload } of items) {
    const told = payload as WakePayload;
    console.log(`${told.process}: ${told.input}`);
  }
await database.close();

// Output:
// again: true
// build-7 run
// EVENT_PAYLOAD_INVALID $.percent
// end 1: completed false
// end 2: completed true
// { kind: 'completed', value: { url: '/v7' } }
// build-7: All tests pass.
// deploy-7: Process deploy-7: completed.
