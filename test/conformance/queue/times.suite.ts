import { describe, expect, test } from "vitest";
import { type Lease, leases, queue, type QueueClaimRef, sessions } from "../../../src/sessions.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  acquired,
  ada,
  bob,
  enqueued,
  inSession,
  named,
  stored,
} from "../lease/leased-sessions.ts";
import type { InFixture, Fixture } from "../lease/leased-sessions.ts";

/** Leases and queues when the clock moves on during a call, or says what cannot be. */
export function queueTimesSuite(backend: Backend): void {
  const fixture = inSession(backend);
  describe("a lease that runs out during a call", () => {
    lateTests(fixture);
  });
  describe("a clock that is wrong", () => {
    wrongClockTests(fixture);
  });
}

type Call = (at: Fixture, lease: Lease, claim: QueueClaimRef) => Promise<unknown>;

const calls: Readonly<Record<string, Call>> = {
  renewing: (at, lease) => at.leases.renew(lease),
  claiming: (at, lease) => at.queue.claimTurn(lease),
  "claiming a command": (at, lease) => at.queue.claimCommand(lease),
  completing: (at, lease, claim) => at.queue.completeWithoutCommit(lease, [claim]),
  committing: ({ database }, fence, claim) =>
    sessions(database).commit(fence.session, {
      turn: "t",
      fence,
      claims: [claim],
    }),
};

function lateTests(fixture: InFixture): void {
  test.each(Object.entries(calls))("[AX4] refuses %s, and the work goes to the next", (_, call) =>
    fixture(async (at) => {
      const { clock, database } = at;
      await enqueued(at, "a");
      const lease = await acquired(at, ada, 100);
      const claimed = await at.queue.claimTurn(lease);
      const claim = claimed?.ref ?? { claim: "", batches: [] };
      const [, ...before] = (await stored(database)) as unknown[];
      clock.advance(99);
      const begun = rejection(call(at, lease, claim));
      clock.advance(1);
      expect(await begun).toMatchObject({
        code: "LEASE_LOST",
        details: { reason: "expired" },
      });
      const [, ...after] = (await stored(database)) as unknown[];
      expect(after).toEqual(before);
      // That it had run out then is known from now on.
      clock.set(1_050);
      const next = await at.queue.claimTurn(await acquired(at, bob));
      expect(named(next?.batches)).toBe("a");
    })(),
  );

  test(
    "[AX4] gives it to who asked before, for as long as they asked",
    fixture(async (at) => {
      await acquired(at, ada, 100);
      at.clock.advance(99);
      const asked = at.leases.acquire("s", bob, { lease: 100 });
      at.clock.advance(1);
      expect(await asked).toMatchObject({
        kind: "acquired",
        lease: { fence: 2, claimedAt: 1_100, expiresAt: 1_200 },
      });
    }),
  );
}

function wrongClockTests(fixture: InFixture): void {
  test.each([2 ** 53, 2 ** 63, -(2 ** 60), Number.NaN, 0.5])(
    "[AX20] that says %d is refused by leases and queues, and changes nothing",
    (now) =>
      fixture(async (at) => {
        const { database } = at;
        const { id } = await enqueued(at, "a");
        const lease = await acquired(at);
        const claimed = await at.queue.claimTurn(lease);
        const claim = claimed?.ref ?? { claim: "", batches: [] };
        await enqueued(at, "b");
        const before = await stored(database);
        const clock = { now: () => now, wakeAt: () => () => undefined };
        const late = leases(database, { clock });
        const wrong = queue(database, { clock });
        for (const call of [
          () => late.acquire("s", bob),
          () => late.acquire("s", ada),
          () => late.renew(lease),
          () => wrong.enqueue("s", { items: [{ kind: "k", payload: 1 }] }),
          () => wrong.claimTurn(lease),
          () => wrong.claimCommand(lease),
          () => wrong.claimBatches(lease, [id]),
          () => wrong.completeWithoutCommit(lease, [claim]),
          () => wrong.cancel("s", id),
        ])
          expect(await rejection(call())).toMatchObject({
            code: "OPTION_INVALID",
          });
        expect(await stored(database)).toEqual(before);
      })(),
  );

  test(
    "[AX20] is not needed for a time that cannot be: as an instant or a duration it is refused, and the longest lease ends at the last date",
    fixture(async (at) => {
      const { database } = at;
      const lease = await acquired(at);
      const before = await stored(database);
      for (const far of [2 ** 53, 2 ** 63]) {
        expect(await rejection(enqueued(at, "a", { availableAt: far }))).toMatchObject({
          code: "OPTION_INVALID",
        });
        for (const call of [
          () => at.leases.acquire("s", ada, { lease: far }),
          () => at.leases.renew(lease, { lease: far }),
          async () => at.leases.keep(lease, { lease: far }),
        ])
          expect(await rejection(call())).toMatchObject({
            code: "DURATION_INVALID",
          });
      }
      expect(await stored(database)).toEqual(before);
      expect(await at.leases.renew(lease, { lease: 2 ** 53 - 1 })).toMatchObject({
        expiresAt: 8.64e15,
      });
    }),
  );
}
