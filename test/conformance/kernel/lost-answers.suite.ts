import { describe, expect, test } from "vitest";
import { sessions } from "../../../src/sessions.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  acquired,
  ada,
  bob,
  enqueued,
  inSession,
  listed,
  named,
  stored,
  until,
} from "../lease/leased-sessions.ts";
import type { InFixture } from "../lease/leased-sessions.ts";

/** Leases and claims when an answer is lost, a wait is given up, or a clock goes back. */
export function lostAnswersSuite(backend: Backend): void {
  const fixture = inSession(backend);
  describe("a claim whose answer is lost", () => {
    claimTests(fixture);
  });
  describe("what is no lease, claim or choice", () => {
    nonsenseTests(fixture);
  });
  describe("a lease that ended", () => {
    endTests(fixture);
  });
}

function claimTests(fixture: InFixture): void {
  test(
    "[A34] is answered again to who repeats it with its key, and no other",
    fixture(async (at) => {
      const { queue, faults } = at;
      await enqueued(at, "a");
      await enqueued(at, "b");
      const lease = await acquired(at);
      faults.losesAnswer = true;
      expect(await rejection(queue.claimTurn(lease, { key: "k1" }))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      const again = await queue.claimTurn(lease, { key: "k1" });
      expect(named(again?.batches)).toBe("a");
      expect(await queue.claimTurn(lease, { key: "k1" })).toEqual(again);
      const next = await queue.claimTurn(lease, { key: "k2" });
      expect(named(next?.batches)).toBe("b");
      for (const work of [again, next])
        await queue.completeWithoutCommit(lease, work ? [work.ref] : []);
      expect(await listed(at)).toBe("");
    }),
  );

  test(
    "[A34] its key is a text, and another lease gets another claim for it",
    fixture(async (at) => {
      const { queue, leases } = at;
      await enqueued(at, "a");
      const lease = await acquired(at);
      expect(await rejection(queue.claimTurn(lease, { key: "" }))).toMatchObject({
        code: "NAME_INVALID",
      });
      const first = await queue.claimTurn(lease, { key: "k" });
      await leases.release(lease);
      const second = await queue.claimTurn(await acquired(at, bob), {
        key: "k",
      });
      expect(named(second?.batches)).toBe("a");
      expect(second?.ref.claim).not.toBe(first?.ref.claim);
    }),
  );

  test(
    "[A39] completing it without a commit may be repeated under its lease, and under no other",
    fixture(async (at) => {
      const { queue, faults, leases } = at;
      await enqueued(at, "a");
      const lease = await acquired(at);
      const claims = [await queue.claimTurn(lease)].flatMap((work) => work?.ref ?? []);
      expect(claims).toHaveLength(1);
      faults.losesAnswer = true;
      expect(await rejection(queue.completeWithoutCommit(lease, claims))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      const before = await stored(at.database);
      await queue.completeWithoutCommit(lease, claims);
      expect(await stored(at.database)).toEqual(before);
      await leases.release(lease);
      const next = await acquired(at, bob);
      expect(await rejection(queue.completeWithoutCommit(next, claims))).toMatchObject({
        code: "CLAIM_LOST",
      });
    }),
  );
}

function nonsenseTests(fixture: InFixture): void {
  test(
    "is refused with a code, repeats no secret, and changes nothing",
    fixture(async (at) => {
      const { queue, leases, database } = at;
      await enqueued(at, "a");
      const lease = await acquired(at);
      const before = await stored(database);
      const { token: _, ...partial } = lease;
      const nothing = [null, undefined, {}, 7, partial, { ...lease, session: 1 }];
      const calls = [
        ...nothing.flatMap((given) => [
          () => leases.renew(given as never),
          () => leases.release(given as never),
          async () => leases.keep(given as never),
          () => queue.claimTurn(given as never),
          () => queue.claimCommand(given as never),
          () => queue.claimBatches(given as never, []),
          () => queue.completeWithoutCommit(given as never, []),
        ]),
        () => queue.claimTurn(lease, { boundary: "x" as never }),
        () => queue.claimBatches(lease, [], { boundary: "x" as never }),
        () => queue.waitForWork("s", { boundary: "x" as never }),
        () => queue.list("s", { state: "x" as never }),
        () => queue.claimBatches(lease, undefined as never),
        () =>
          queue.claimBatches(
            lease,
            Array.from({ length: 257 }, () => "b"),
          ),
        () => queue.abandon("s", undefined as never),
        () => queue.abandon("s", { claim: "c" } as never),
        () => queue.completeWithoutCommit(lease, undefined as never),
        () =>
          queue.completeWithoutCommit(
            lease,
            Array.from({ length: 257 }, () => ({ claim: "c", batches: [] })),
          ),
      ];
      for (const call of calls) {
        const error = await rejection(call());
        expect(error).toMatchObject({ code: "OPTION_INVALID" });
        expect(error.message).not.toContain(lease.token);
      }
      for (const id of [undefined, "", 7, "x".repeat(200)])
        expect(await rejection(queue.cancel("s", id as never))).toMatchObject({
          code: "NAME_INVALID",
        });
      for (const fence of [null, {}, partial])
        expect(
          await rejection(
            sessions(database).commit(
              { id: "s" as never, generation: 1 },
              { turn: "t", fence: fence as never, nodes: [] },
            ),
          ),
        ).toMatchObject({ code: "LEASE_LOST", details: { reason: "missing" } });
      expect(await stored(database)).toEqual(before);
    }),
  );
}

function endTests(fixture: InFixture): void {
  test(
    "[A24] giving up a wait leaves the lease with another task of the same incarnation",
    fixture(async (at) => {
      const { leases, faults } = at;
      const held = await acquired(at, bob);
      const abort = new AbortController();
      let goOn = (): void => undefined;
      faults.failure = new Promise((resolve) => (goOn = resolve));
      const gaveUp = rejection(leases.waitForLease("s", bob, { signal: abort.signal }));
      await until(() => faults.writes === 2);
      abort.abort();
      expect(await gaveUp).toMatchObject({ code: "ABORTED" });
      faults.failure = undefined;
      goOn();
      expect(await leases.acquire("s", ada)).toMatchObject({ kind: "busy" });
      expect(await leases.renew(held)).toMatchObject({ fence: 1 });
    }),
  );

  test(
    "[A27] once refused because it has run out stays refused when the clock goes back",
    fixture(async (at) => {
      const { queue, clock, database, leases } = at;
      await enqueued(at, "a");
      const expired = { code: "LEASE_LOST", details: { reason: "expired" } };
      for (const [index, attempt] of [
        (lease: typeof first) => queue.claimTurn(lease),
        (lease: typeof first) => queue.completeWithoutCommit(lease, []),
        (fence: typeof first) =>
          sessions(database).commit(
            { id: "s" as never, generation: 1 },
            { turn: "t", fence, nodes: [] },
          ),
      ].entries()) {
        clock.set(1_000);
        const lease = await acquired(at, ada, 100);
        expect(lease.fence).toBe(index + 1);
        clock.set(1_100);
        expect(await rejection(attempt(lease))).toMatchObject(expired);
        clock.set(1_050);
        expect(await rejection(attempt(lease))).toMatchObject(expired);
        expect(await leases.read("s")).toBeUndefined();
      }
      const first = await acquired(at, bob);
      expect(first.fence).toBe(4);
    }),
  );
}
