import { openSqlite } from "holdfast/sqlite";
import { processes } from "holdfast/processes";
import { sessions } from "holdfast/sessions";
import { triggers } from "holdfast/triggers";
import type { FiredInstant } from "holdfast/triggers";
import { manualClock } from "holdfast/testing";

// A manual clock, so that days pass at once. Leave it out to use the real one.
const clock = manualClock(Date.UTC(2026, 2, 26, 12));
const database = await openSqlite(":memory:", { clock });
const rules = triggers(database);
await sessions(database).create("chat-7");

// A session wants one process for every push. The process gets the arguments it names.
await rules.subscribe({
  key: "on-push",
  registrant: "chat-7",
  source: { type: "webhook", key: "github" },
  target: { kind: "tool", definition: "ci/build", wakeTarget: "chat-7" },
  arguments: { push: { from: "payload" }, notify: { value: true } },
});

// A webhook may arrive twice. One transaction records it and registers its processes, once.
for (const attempt of [1, 2]) {
  const { kind, deliveries } = await rules.record({
    key: "github:4711",
    source: { type: "webhook", key: "github" },
    payload: { branch: "main" },
  });
  console.log(`delivery ${attempt}: ${kind}, ${deliveries.length} process`);
}
const [started] = (await processes(database).handles("chat-7")).items;
const { id = "", status } = started?.process ?? {};
console.log(status, (await processes(database).get(id))?.input);

// Every working day at nine in Berlin, where the clocks go forward that weekend.
await rules.subscribe({
  key: "morning",
  source: { cron: "0 9 * * 1-5", timeZone: "Europe/Berlin" },
  target: { kind: "report" },
});
const told: ((fired: FiredInstant) => void)[] = [];
const onFired = (fired: FiredInstant): void => told.shift()?.(fired);
const firesAfter = async (days: number): Promise<FiredInstant> => {
  const fired = new Promise<FiredInstant>((resolve) => told.push(resolve));
  clock.advance(days * 24 * 60 * 60 * 1_000);
  return fired;
};

// Any number of processes may run this; each instant fires in one of them.
const scheduler = rules.run({ onFired });
for (const days of [1, 3]) console.log(new Date((await firesAfter(days)).instant).toISOString());
await scheduler.close();

// After a week without a scheduler, the latest instant fires once and reports the skipped ones.
const late = firesAfter(7);
const again = rules.run({ onFired });
const { instant, skipped } = await late;
console.log(new Date(instant).toISOString());
console.log("not for:", new Date(skipped?.from ?? instant).toISOString());
await again.close();

const reports = await processes(database).list({ kind: "report" });
console.log(reports.items.length, "reports to be written");
await database.close();

// Output:
// delivery 1: recorded, 1 process
// delivery 2: replayed, 1 process
// running { push: { branch: 'main' }, notify: true }
// 2026-03-27T08:00:00.000Z
// 2026-03-30T07:00:00.000Z
// 2026-04-06T07:00:00.000Z
// not for: 2026-03-31T07:00:00.000Z
// 3 reports to be written
