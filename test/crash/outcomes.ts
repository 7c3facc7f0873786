import { expect } from "vitest";
import type { Database } from "../../src/kernel.ts";
import { effects } from "../../src/effects.ts";
import { leases, queue } from "../../src/sessions.ts";
import { processes, type Processes } from "../../src/processes.ts";
import { storedEffects } from "../conformance/effect/fixture.ts";
import { charge, scope } from "./actions/effects.ts";
import { work, worker } from "./actions/registry.ts";
import type { Outcome } from "./kill-matrix.ts";

/** That of leases for which nobody says how long they are. */
const ttlMs = 30_000;

/** How far an effect had come. Who executes it then gets what is recorded, or runs it as soon as it may. */
export async function executedAfter({
  database,
  clock,
  provesDeath,
  said,
}: Outcome): Promise<string> {
  const store = effects(database);
  const [row] = await storedEffects(database);
  const status = row === undefined ? "absent" : String(row["status"]);
  if (status === "inProgress" && !provesDeath) {
    const { kind } = await store.claim(scope, "charge", charge);
    expect(kind).toBe("busy");
    clock.advance(ttlMs);
  }
  let runs = 0;
  const value = await store.execute(scope, "charge", charge, () => {
    runs += 1;
    return "by another";
  });
  const isRecorded = status === "completed";
  expect([value, runs]).toEqual(isRecorded ? ["by the child", 0] : ["by another", 1]);
  expect(said).toEqual(isRecorded || (status === "inProgress" && said.length > 0) ? ["runs"] : []);
  expect(await store.execute(scope, "charge", charge, refuse)).toBe(value);
  expect(await effects(database).replay(scope, "charge", charge)).toBe(value);
  expect(await storedEffects(database)).toHaveLength(1);
  return status;
}

function refuse(): never {
  throw new Error("It is recorded, and need not be run.");
}

/** How far a worker had come. Another one then ends what it has not ended, as soon as it may. */
export async function workedAfter({ database, clock, provesDeath }: Outcome): Promise<string> {
  const registry = processes(database);
  const state = await progress(registry);
  if (state !== "ended") {
    const isHeld = state !== "free";
    if (isHeld && !provesDeath) {
      expect(await lostLease(registry)).toBe(undefined);
      const { kind } = await registry.claim("p", worker(database));
      expect(kind).toBe("busy");
      clock.advance(ttlMs);
    }
    const loss = provesDeath ? "ownerDead" : "expired";
    expect(await lostLease(registry)).toBe(isHeld ? loss : "none");
    expect(await work(database)).toEqual({
      fence: isHeld ? 2 : 1,
      attempts: state === "free" || state === "claimed" ? 1 : 2,
    });
  }
  expect(await registry.output("p")).toEqual({ kind: "completed", value: 7 });
  expect(await registry.count("p", "found")).toBe(1);
  expect(await lostLease(registry)).toBe(undefined);
  // One for what was found, one for the end.
  expect(await consumedWakes(database)).toBe(2);
  return state;
}

async function progress(registry: Processes): Promise<string> {
  const record = await registry.get("p");
  if (record?.status !== "running") return "ended";
  if ((await registry.count("p", "found")) > 0) return "reported";
  if (record.startedAt !== null) return "started";
  return (await registry.holder("p")) === undefined ? "free" : "claimed";
}

/** Why nobody works on the process, as those are told who look for work. */
async function lostLease(registry: Processes): Promise<string | undefined> {
  const { items } = await registry.worklist();
  return items.find(({ process }) => process.id === "p")?.lease;
}

/** Takes all wakes out of the queue of the session, and tells how many there were. */
export async function consumedWakes(database: Database): Promise<number> {
  const own = leases(database);
  const held = await own.acquire("chat", { owner: "ada", incarnation: "1" });
  if (held.kind === "busy") throw new Error("Nobody else asks.");
  const queued = queue(database);
  let count = 0;
  for (;;) {
    const claim = await queued.claimTurn(held.lease, { limit: 1 });
    if (claim === undefined) break;
    count += 1;
    await queued.completeWithoutCommit(held.lease, [claim.ref]);
  }
  await own.release(held.lease);
  return count;
}
