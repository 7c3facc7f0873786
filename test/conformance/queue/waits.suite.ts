import { describe, expect, test } from "vitest";
import type { OwnerId } from "../../../src/kernel.ts";
import { parseSessionId } from "../../../src/sessions.ts";
import { leaseOwned } from "../../../src/stores/lease/lease-row.ts";
import { queueOwned } from "../../../src/stores/queue/batch-row.ts";
import { removeOwned } from "../../../src/stores/removal.ts";
import { livingSession } from "../../../src/stores/session-row.ts";
import { isOpen } from "../wait-fixture.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  acquired,
  ada,
  anotherProcess,
  createSession,
  enqueued,
  inSession,
  stored,
} from "../lease/leased-sessions.ts";
import type { InFixture, Fixture } from "../lease/leased-sessions.ts";

const died = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAW" as OwnerId;
/** A day, so that no wait can end by its timeout unless the test moves the clock. */
const timeout = "1 day";

export function queueWaitsSuite(backend: Backend): void {
  const fixture = inSession(backend);
  describe("waiting for work", () => {
    waitTests(fixture);
    claimedTests(fixture);
    if (backend.survives)
      test(
        "ends when another process enqueues something",
        fixture(async (at) => {
          const theirs = await anotherProcess(at);
          const { promise } = await waiting(at);
          await enqueued(theirs, "a");
          expect(await promise).toBeUndefined();
        }),
      );
  });
  describe("the queue of a deleted session", () => {
    forgetTests(fixture);
  });
}

/** Waits until the waiter sleeps on the clock: its timeout, at least. */
async function waiting(
  { queue, clock, faults }: Fixture,
  boundary: "idle" | "activeTurn" = "idle",
): Promise<{ readonly promise: Promise<void> }> {
  const promise = queue.waitForWork("s", { boundary, timeout });
  await faults.asleep(clock);
  expect(await isOpen(promise)).toBe(true);
  return { promise };
}

function waitTests(fixture: InFixture): void {
  test(
    "ends at once when there is some",
    fixture(async (at) => {
      await enqueued(at, "a");
      await at.queue.waitForWork("s", { timeout: 0 });
      expect(at.faults.listeners).toBe(0);
    }),
  );

  test(
    "ends when something is enqueued, and not for another session",
    fixture(async (at) => {
      await createSession(at.database, "t");
      const { promise } = await waiting(at);
      await at.queue.enqueue("t", { items: [{ kind: "input", payload: 1 }] });
      expect(await isOpen(promise)).toBe(true);
      await enqueued(at, "a");
      expect(await promise).toBeUndefined();
      expect(at.clock.sleepers).toBe(0);
    }),
  );

  test(
    "sleeps exactly until the earliest instant, and hears of an earlier one",
    fixture(async (at) => {
      const { clock } = at;
      await enqueued(at, "late", { availableAt: 5_000 });
      const first = await waiting(at);
      await enqueued(at, "earlier", { availableAt: 3_000 });
      clock.advance(1_999);
      expect(await isOpen(first.promise)).toBe(true);
      clock.advance(1);
      await first.promise;
      expect(clock.now()).toBe(3_000);
    }),
  );

  test(
    "inside a turn ends when what is first in line may be taken there",
    fixture(async (at) => {
      const { queue } = at;
      const first = await enqueued(at, "a", { delivery: "afterTurnCommit" });
      await enqueued(at, "b");
      await queue.waitForWork("s", { timeout: 0 });
      const { promise } = await waiting(at, "activeTurn");
      await queue.cancel("s", first.id);
      expect(await promise).toBeUndefined();
    }),
  );

  test(
    "ends in vain after its timeout, and is refused for an unknown session",
    fixture(async ({ queue, clock, faults }) => {
      const late = rejection(queue.waitForWork("s", { timeout: 10 }));
      await faults.asleep(clock);
      clock.advance(10);
      const error = await late;
      expect(error).toMatchObject({ code: "DEADLINE_EXCEEDED" });
      expect(error.message).toContain('work for session "s"');
      expect(await rejection(queue.waitForWork("none"))).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
    }),
  );
}

function claimedTests(fixture: InFixture): void {
  const claimed = async (
    at: Fixture,
    process: OwnerId | null,
  ): Promise<{ readonly giveBack: () => Promise<unknown> }> => {
    await enqueued(at, "a");
    const { leases, queue } = at;
    const outcome = await leases.acquire("s", { ...ada, process });
    if (outcome.kind === "busy") throw new Error("busy");
    const claim = await queue.claimTurn(outcome.lease);
    return {
      giveBack: async () => claim && queue.abandon("s", claim.ref),
    };
  };

  test(
    "ends when claimed work is given back",
    fixture(async (at) => {
      const { giveBack } = await claimed(at, null);
      const { promise } = await waiting(at);
      await giveBack();
      expect(await promise).toBeUndefined();
    }),
  );

  test(
    "ends when the lease is given back under which it was claimed",
    fixture(async (at) => {
      await claimed(at, at.database.owner);
      const { promise } = await waiting(at);
      await at.leases.release(await acquired(at));
      expect(await promise).toBeUndefined();
    }),
  );

  test(
    "ends when that lease runs out",
    fixture(async (at) => {
      await claimed(at, null);
      const { promise } = await waiting(at);
      at.clock.advance(29_999);
      expect(await isOpen(promise)).toBe(true);
      at.clock.advance(1);
      expect(await promise).toBeUndefined();
    }),
  );

  test(
    "ends when the process dies that claimed it",
    fixture(async (at) => {
      await claimed(at, died);
      const { promise } = await waiting(at);
      at.faults.die(died);
      expect(await promise).toBeUndefined();
    }),
  );
}

function forgetTests(fixture: InFixture): void {
  test(
    "is removed in slices with all it remembers, and leaves the fence and other sessions alone",
    fixture(async (at) => {
      const { queue, database } = at;
      await createSession(database, "t");
      const items = [
        { kind: "input", payload: 1 },
        { kind: "input", payload: 2 },
      ];
      await queue.enqueue("t", { items, source: "kept" });
      const kept = JSON.stringify(await stored(database));
      for (const source of ["a", "b", { process: "p", sequence: 1 }])
        await queue.enqueue("s", { items, source });
      const lease = await acquired(at);
      for (const _ of [1, 2, 3]) {
        const claim = await queue.claimTurn(lease);
        if (claim && claim.batches[0]?.source !== "b")
          await queue.completeWithoutCommit(lease, [claim.ref]);
      }
      const session = await database.read("s", () => livingSession({ id: parseSessionId("s") }));
      // Two items, their batch, one source key, one mark, and two completed claims.
      const slices: number[] = [];
      for (let removed = 2; removed === 2;) {
        removed = await database.write("forget", () => removeOwned(queueOwned, session.key, 2));
        slices.push(removed);
      }
      expect(slices).toEqual([2, 2, 2, 1]);
      expect(await database.write("forget", () => removeOwned(leaseOwned, session.key, 2))).toBe(1);
      expect(await database.write("forget", () => removeOwned(leaseOwned, session.key, 2))).toBe(0);
      const [leaseRows, ...rest] = (await stored(database)) as [object[]];
      expect(leaseRows).toMatchObject([{ fence: 1, token: null, owner: null }]);
      expect(JSON.stringify([[], ...rest])).toBe(kept);
    }),
  );
}
