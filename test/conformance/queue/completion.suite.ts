import { describe, expect, test } from "vitest";
import { rows, sql, type Database } from "../../../src/kernel.ts";
import { type QueueClaimRef, type Lease, sessions, type TurnDraft } from "../../../src/sessions.ts";
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
  refOf,
  stored,
} from "../lease/leased-sessions.ts";
import type { InFixture, Work } from "../lease/leased-sessions.ts";
import { dumpOf } from "../session/fixture.ts";

export function queueCompletionSuite(backend: Backend): void {
  const fixture = inSession(backend);
  describe("giving claimed work back", () => {
    abandonTests(fixture);
  });
  describe("completing claimed work", () => {
    completionTests(fixture);
  });
  describe("committing a turn with claimed work", () => {
    commitTests(fixture);
  });
}

async function remembered(database: Database): Promise<number> {
  const found = await database.read("remembered", () =>
    rows(sql`SELECT number FROM holdfast_queue_completed`),
  );
  return found.length;
}

const taken = (work: Work): string => named(work?.batches);
function abandonTests(fixture: InFixture): void {
  test(
    "[A36] gives a new claim under the same lease, and the old one is refused; the next lease has a higher fence",
    fixture(async (at) => {
      const { queue, leases } = at;
      await enqueued(at, "a");
      const lease = await acquired(at);
      const old = await queue.claimTurn(lease);
      expect(await queue.abandon("s", refOf(old))).toBe(1);
      expect(await queue.abandon("s", refOf(old))).toBe(0);
      const again = await queue.claimTurn(lease);
      expect(taken(again)).toBe("a");
      expect(again?.fence).toBe(1);
      expect(again?.ref.claim).not.toBe(old?.ref.claim);
      expect(await queue.abandon("s", refOf(old))).toBe(0);
      const oldIsLost = async (): Promise<void> => {
        const late = queue.completeWithoutCommit(lease, [refOf(old)]);
        expect(await rejection(late)).toMatchObject({
          code: "CLAIM_LOST",
          retryable: true,
        });
      };
      await oldIsLost();
      await queue.completeWithoutCommit(lease, [refOf(again)]);
      // Nor does it count when nothing of it is left in the queue.
      await oldIsLost();
      await enqueued(at, "b");
      await leases.release(lease);
      const next = await queue.claimTurn(await acquired(at, bob));
      expect(taken(next)).toBe("b");
      expect(next?.fence).toBe(2);
    }),
  );

  test(
    "[A36] a claim that was given back does not count after its batch was cancelled",
    fixture(async (at) => {
      const { queue } = at;
      const { id } = await enqueued(at, "a");
      const lease = await acquired(at);
      const claim = refOf(await queue.claimTurn(lease));
      await queue.abandon("s", claim);
      expect((await queue.cancel("s", id))?.id).toBe(id);
      expect(await rejection(queue.completeWithoutCommit(lease, [claim]))).toMatchObject({
        code: "CLAIM_LOST",
      });
    }),
  );
}

function completionTests(fixture: InFixture): void {
  test(
    "[A39] with a wrong claim or fence fails and keeps all batches; with the right ones it removes them",
    fixture(async (at) => {
      const { queue, database } = at;
      await enqueued(at, "a", { slot: "join" });
      await enqueued(at, "b", { slot: "join" });
      const lease = await acquired(at);
      const right = refOf(await queue.claimTurn(lease));
      const before = await stored(database);
      for (const claims of [
        [{ ...right, claim: "guessed" }],
        [right, right],
        [right, { claim: "guessed", batches: right.batches }],
        [{ ...right, batches: [] }],
        // One that nobody made, for batches that nobody has.
        [{ claim: "made-up", batches: ["unknown"] }],
        [{ ...right, batches: ["unknown"] }],
      ])
        expect(await rejection(queue.completeWithoutCommit(lease, claims))).toMatchObject({
          code: "CLAIM_LOST",
          details: { session: "s", claim: claims.length - 1 },
        });
      expect(
        await rejection(queue.completeWithoutCommit({ ...lease, fence: 2 }, [right])),
      ).toMatchObject({ code: "LEASE_LOST" });
      expect(await stored(database)).toEqual(before);
      await queue.completeWithoutCommit(lease, [right]);
      expect(await listed(at)).toBe("");
    }),
  );

  test(
    "may be repeated, with new claims beside it; a claim that does not count is named by its place",
    fixture(async (at) => {
      const { queue, database } = at;
      await enqueued(at, "a");
      await enqueued(at, "b");
      const lease = await acquired(at);
      const a = refOf(await queue.claimTurn(lease));
      await queue.completeWithoutCommit(lease, [a]);
      const before = await stored(database);
      await queue.completeWithoutCommit(lease, [a]);
      expect(await stored(database)).toEqual(before);
      const b = refOf(await queue.claimTurn(lease));
      for (const wrong of [
        { ...b, batches: a.batches },
        { ...a, batches: b.batches },
        { ...a, batches: ["unknown"] },
      ])
        expect(await rejection(queue.completeWithoutCommit(lease, [a, wrong, b]))).toMatchObject({
          code: "CLAIM_LOST",
          details: { claim: 1 },
        });
      await queue.completeWithoutCommit(lease, [a, b]);
      await queue.completeWithoutCommit(lease, [b, a]);
      expect(await listed(at)).toBe("");
    }),
  );

  test(
    "is remembered with the claims of one call, not longer: under the next lease nothing of it is left",
    fixture(async (at) => {
      const { queue, leases, database } = at;
      const lease = await acquired(at);
      const claims: QueueClaimRef[] = [];
      for (let number = 0; number < 257; number += 1) {
        await enqueued(at, `${number}`);
        claims.push(refOf(await queue.claimTurn(lease)));
      }
      const [oldest = refOf(undefined), ...rest] = claims;
      await queue.completeWithoutCommit(lease, [oldest]);
      await queue.completeWithoutCommit(lease, rest);
      await queue.completeWithoutCommit(lease, rest);
      expect(await rejection(queue.completeWithoutCommit(lease, [oldest]))).toMatchObject({
        code: "CLAIM_LOST",
      });
      expect(await remembered(database)).toBe(256);
      await leases.release(lease);
      const next = await acquired(at, bob);
      await enqueued(at, "a");
      await queue.completeWithoutCommit(next, [refOf(await queue.claimTurn(next))]);
      expect(await remembered(database)).toBe(1);
    }),
  );

  test(
    "[AX5] with other ids than those it took, fewer or more, fails and removes nothing",
    fixture(async (at) => {
      const { queue, database } = at;
      for (const name of ["a", "b", "c"]) await enqueued(at, name, { slot: "join" });
      const lease = await acquired(at);
      const ab = refOf(await queue.claimTurn(lease, { limit: 2 }));
      const c = refOf(await queue.claimTurn(lease));
      const [a = "", b = ""] = ab.batches;
      const [other = ""] = c.batches;
      const before = await stored(database);
      for (const batches of [[a, other], [a], [a, b, other], [a, a], [a, "unknown"]])
        expect(
          await rejection(queue.completeWithoutCommit(lease, [{ ...ab, batches }])),
        ).toMatchObject({ code: "CLAIM_LOST" });
      expect(await stored(database)).toEqual(before);
      await queue.completeWithoutCommit(lease, [c, ab]);
      expect(await listed(at)).toBe("");
    }),
  );

  test(
    "[A41] a second claim yields nothing, and the first completes after its lease was renewed",
    fixture(async (at) => {
      const { queue, leases, clock } = at;
      await enqueued(at, "a");
      const lease = await acquired(at, ada, 100);
      const work = await queue.claimTurn(lease);
      expect(await queue.claimTurn(lease)).toBeUndefined();
      clock.advance(99);
      const renewed = await leases.renew(lease, { lease: 100 });
      clock.advance(99);
      expect(await queue.claimTurn(renewed)).toBeUndefined();
      await queue.completeWithoutCommit(lease, [refOf(work)]);
      expect(await listed(at)).toBe("");
    }),
  );

  test(
    "[AX4] is refused once the lease has run out, though nobody has taken the work",
    fixture(async (at) => {
      const { queue, leases, clock, database } = at;
      await enqueued(at, "a");
      const lease = await acquired(at, ada, 100);
      const work = await queue.claimTurn(lease);
      clock.advance(100);
      const refused = async (): Promise<unknown> => {
        const late = queue.completeWithoutCommit(lease, [refOf(work)]);
        expect(await rejection(late)).toMatchObject({
          code: "LEASE_LOST",
          details: { reason: "expired" },
        });
        return stored(database);
      };
      // The first time it is recorded that the lease has run out.
      const before = await refused();
      expect(await refused()).toEqual(before);
      expect(await rejection(leases.renew(lease))).toMatchObject({
        code: "LEASE_LOST",
      });
      expect(taken(await queue.claimTurn(await acquired(at, bob)))).toBe("a");
    }),
  );
}

function commitTests(fixture: InFixture): void {
  test(
    "[A16] an abandoned claim, or one of an earlier lease, refuses the whole turn; the right one succeeds, and again it is replayed",
    fixture(async (at) => {
      const { queue, leases, database } = at;
      const store = sessions(database);
      await enqueued(at, "a");
      const first = await acquired(at);
      const turnOf = (fence: Lease, claim: QueueClaimRef): TurnDraft => ({
        turn: "t",
        fence,
        claims: [claim],
        nodes: [{ kind: "message", role: "user", payload: "hello" }],
      });
      const refuses = async (turn: TurnDraft): Promise<void> => {
        const before = [await stored(database), await dumpOf(database)];
        expect(await rejection(store.commit(first.session, turn))).toMatchObject({
          code: "CLAIM_LOST",
          details: { claim: 0 },
        });
        expect([await stored(database), await dumpOf(database)]).toEqual(before);
      };
      const abandoned = refOf(await queue.claimTurn(first));
      await queue.abandon("s", abandoned);
      await refuses(turnOf(first, abandoned));
      const old = refOf(await queue.claimTurn(first));
      await refuses(turnOf(first, abandoned));
      await leases.release(first);
      const second = await acquired(at);
      expect(second.fence).toBe(2);
      await refuses(turnOf(second, old));
      const right = refOf(await queue.claimTurn(second));
      await refuses(turnOf(second, old));
      await refuses(turnOf(second, { ...right, claim: old.claim }));
      const turn = turnOf(second, right);
      expect(await store.commit(first.session, turn)).toMatchObject({
        kind: "committed",
        revision: 1,
      });
      expect(await listed(at)).toBe("");
      expect(await store.commit(first.session, turn)).toMatchObject({
        kind: "replayed",
        revision: 1,
      });
    }),
  );
}
