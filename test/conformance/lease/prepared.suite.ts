import { describe, expect, test } from "vitest";
import { rows, run, type Tx, sql } from "../../../src/kernel.ts";
import { type Lease, queue as queueIn, sessions } from "../../../src/sessions.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { acquired, ada, bob, enqueued, inSession, listed, named } from "./leased-sessions.ts";
import type { InFixture, Fixture } from "./leased-sessions.ts";

const isolation = "readCommitted";

/** Leases and claims as parts of a transaction of the app. */
export function preparedLeasesSuite(backend: Backend): void {
  const fixture = inSession(backend);
  describe("leases and claims in a transaction of the app", () => {
    composedTests(fixture);
    expiredTests(fixture);
    caughtTests(fixture);
    elsewhereTests(fixture, backend);
    unreadableTests(fixture);
  });
}

/** Runs a part in a transaction that fails after it. */
function failedAfter(
  { database }: Pick<Fixture, "database">,
  part: () => Tx<unknown>,
): Promise<unknown> {
  const body = function* (): Tx<void> {
    yield* part();
    throw new Error("The app failed.");
  };
  return rejection(database.write("app", body, { isolation }));
}

function composedTests(fixture: InFixture): void {
  test(
    "happen with it, or not at all",
    fixture(async (at) => {
      const { leases, queue, database } = at;
      await enqueued(at, "a");
      const acquire = leases.acquire.prepare("s", ada);
      await failedAfter(at, acquire);
      expect(await leases.read("s")).toBeUndefined();
      const outcome = await database.write("app", acquire, { isolation });
      if (outcome.kind === "busy") throw new Error("Nobody else is here.");
      const { lease } = outcome;
      const claim = queue.claimTurn.prepare(lease);
      await failedAfter(at, claim);
      const work = await database.write("app", claim, { isolation });
      expect(named(work?.batches)).toBe("a");
      const complete = queue.completeWithoutCommit.prepare(
        lease,
        work === undefined ? [] : [work.ref],
      );
      await failedAfter(at, complete);
      expect(await listed(at)).toBe("a");
      await database.write("app", complete, { isolation });
      expect(await listed(at)).toBe("");
    }),
  );

  test(
    "a release tells the keeper once it is durable, and not when it is undone",
    fixture(async (at) => {
      const { leases, clock, database } = at;
      const lease = await acquired(at);
      const keeper = leases.keep(lease);
      const release = leases.release.prepare(lease);
      await failedAfter(at, release);
      expect(clock.sleepers).toBe(1);
      expect(await database.write("app", release, { isolation })).toBe(true);
      expect(clock.sleepers).toBe(0);
      expect(keeper.signal.aborted).toBe(false);
      expect(await leases.read("s")).toBeUndefined();
    }),
  );
}

function expiredTests(fixture: InFixture): void {
  test(
    "[A27] a lease that they find to have run out stays so when the clock goes back",
    fixture(async (at) => {
      const { leases, queue, clock, database } = at;
      const expired = { code: "LEASE_LOST", details: { reason: "expired" } };
      const ways: readonly ((shown: Lease) => () => Tx<unknown>)[] = [
        (shown) => queue.claimTurn.prepare(shown),
        (shown) => queue.completeWithoutCommit.prepare(shown, []),
        (shown) => leases.renew.prepare(shown),
      ];
      for (const prepare of ways) {
        clock.set(1_000);
        const lease = await acquired(at, ada, 100);
        const part = prepare(lease);
        clock.set(1_100);
        const call = database.write("app", part, { isolation });
        expect(await rejection(call)).toMatchObject(expired);
        clock.set(1_050);
        expect(await rejection(leases.renew(lease))).toMatchObject(expired);
        expect(await leases.acquire("s", bob)).toMatchObject({
          kind: "acquired",
          lease: { fence: lease.fence + 1 },
        });
        await endLease(at);
      }
    }),
  );
}

function elsewhereTests(fixture: InFixture, backend: Backend): void {
  test(
    "are refused in a write of another database, and nothing is written there",
    fixture(async ({ queue }) =>
      withDatabase(backend, async (other) => {
        await sessions(other).create("s");
        const items = [{ kind: "input", payload: "astray" }];
        const enqueue = queue.enqueue.prepare("s", { items });
        expect(await rejection(other.write("app", enqueue))).toMatchObject({
          code: "OPERATION_INVALID",
        });
        expect((await queueIn(other).list("s")).items).toEqual([]);
      }),
    ),
  );
}

function caughtTests(fixture: InFixture): void {
  test(
    "[A27] a lease that a body found to have run out stays so when it caught the error and committed",
    fixture(async (at) => {
      const { leases, clock, database } = at;
      clock.set(1_000);
      const lease = await acquired(at, ada, 100);
      const renew = leases.renew.prepare(lease);
      clock.set(1_100);
      const body = function* (): Tx<string> {
        try {
          yield* renew();
          return "renewed";
        } catch {
          return "went on without it";
        }
      };
      expect(await database.write("app", body, { isolation })).toBe("went on without it");
      clock.set(1_050);
      expect(await rejection(leases.renew(lease))).toMatchObject({
        code: "LEASE_LOST",
        details: { reason: "expired" },
      });
    }),
  );

  test(
    "a batch of no source that is enqueued twice by one prepared call is queued once",
    fixture(async (at) => {
      const { queue, database } = at;
      const items = [{ kind: "input", payload: "once" }];
      const enqueue = queue.enqueue.prepare("s", { items });
      expect(await database.write("app", enqueue)).toMatchObject({
        kind: "queued",
      });
      expect(await database.write("app again", enqueue)).toMatchObject({
        kind: "duplicate",
        batch: { items: [{ payload: "once" }] },
      });
      expect((await queue.list("s")).items).toHaveLength(1);
    }),
  );
}

/** Ends whatever lease there is. */
async function endLease({ database }: Fixture): Promise<void> {
  await database.write("release", () => run(sql`UPDATE holdfast_session_lease SET token = NULL`));
}

function unreadableTests(fixture: InFixture): void {
  test(
    "a claim that is repeated and cannot be read any more is released, so that it can be cancelled",
    fixture(async (at) => {
      const { queue, database } = at;
      const bad = await enqueued(at, "bad");
      await enqueued(at, "good");
      const lease = await acquired(at);
      await queue.claimTurn(lease, { key: "k", limit: 1 });
      await database.write("damage", () =>
        run(sql`UPDATE holdfast_queue_item SET payload = '{' WHERE batch = ${bad.order}`),
      );
      const again = queue.claimTurn(lease, { key: "k", limit: 1 });
      expect(await rejection(again)).toMatchObject({ code: "CORRUPT_ROW" });
      expect(
        await database.read("claims", () =>
          rows(sql`SELECT id FROM holdfast_queue_batch WHERE claim IS NOT NULL`),
        ),
      ).toEqual([]);
      expect(await queue.cancel("s", bad.id)).toEqual({ ...bad, items: [] });
      expect(named((await queue.claimTurn(lease))?.batches)).toBe("good");
    }),
  );
}
