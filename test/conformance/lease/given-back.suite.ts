import { describe, expect, test } from "vitest";
import { type Lease, type LeaseKeeper, sessions, type TurnOutcome } from "../../../src/sessions.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  acquired,
  ada,
  adaAgain,
  bob,
  createSession,
  inSession,
  otherHandles,
  until,
} from "./leased-sessions.ts";
import type { InFixture, Fixture } from "./leased-sessions.ts";

/** Giving a lease back is no loss, whatever happens to the session afterwards. */
export function leaseGivenBackSuite(backend: Backend): void {
  const fixture = inSession(backend);
  describe("a lease that was given back", () => {
    keeperTests(fixture);
    reasonTests(fixture);
  });
}

const handle = { id: "s" as never, generation: 1 };
const turn = { turn: "t", release: true, nodes: [] };

/** The ways of giving a lease back. */
const ways: Readonly<Record<string, (at: Fixture, fence: Lease) => Promise<unknown>>> = {
  "a release": ({ leases }, lease) => leases.release(lease),
  "a commit": ({ database }, fence) => sessions(database).commit(handle, { ...turn, fence }),
  "a repeated commit": async ({ database }, fence) => {
    const store = sessions(database);
    await store.commit(handle, { ...turn, release: false, fence });
    return store.commit(handle, { ...turn, fence });
  },
  "a commit in a transaction of the app": ({ database }, fence) => {
    const draft = { ...turn, fence };
    const commit = sessions(database).commit.prepare(handle, draft);
    return database.write("own", commit);
  },
  "a release whose answer is lost": async ({ leases, faults }, lease) => {
    faults.losesAnswer = true;
    return rejection(leases.release(lease));
  },
};

function keeperTests(fixture: InFixture): void {
  test.each(Object.entries(ways))(
    "[AX22] by %s and taken by others ends its keeper without a loss",
    (_, giveBack) =>
      fixture(async (at) => {
        const { clock } = at;
        const other = await otherHandles(at);
        const lease = await acquired(at);
        const keeper = at.leases.keep(lease, { lease: 30_000 });
        await giveBack(at, lease);
        // One gives it back as well, one lets it run out, and one has it when the keeper asks.
        await other.leases.release(await acquired(other, bob));
        await acquired(other, adaAgain, 1_000);
        clock.advance(1_000);
        await acquired(other, bob, 60_000);
        clock.advance(9_000);
        await until(() => clock.sleepers === 0);
        clock.advance(30_000);
        expect(keeper.signal.aborted).toBe(false);
        expect(await at.leases.read("s")).toMatchObject({ fence: 4 });
      })(),
  );

  test(
    "[AX22] ends its keeper without a loss though the session is deleted and the database closed",
    fixture(async (at) => {
      const { leases, clock, database } = at;
      const kept = async (
        id: string,
      ): Promise<{ readonly lease: Lease; readonly keeper: LeaseKeeper }> => {
        const outcome = await leases.acquire(id, ada);
        if (outcome.kind === "busy") throw new Error("Nobody else is here.");
        const { lease } = outcome;
        return { lease, keeper: leases.keep(lease) };
      };
      await createSession(database, "t");
      const first = await kept("s");
      const second = await kept("t");
      await leases.release(first.lease);
      await sessions(database).delete("s");
      const { session, ...fence } = second.lease;
      await sessions(database).commit(session, { ...turn, fence });
      expect(clock.sleepers).toBe(0);
      await database.close();
      clock.advance(60_000);
      expect(first.keeper.signal.aborted).toBe(false);
      expect(second.keeper.signal.aborted).toBe(false);
    }),
  );

  test(
    "[AX22] by a commit that its keeper was not told of ends it once the commit is repeated",
    fixture(async (at) => {
      const { leases, clock, database } = at;
      const other = await otherHandles(at);
      const fence = await acquired(at);
      const keeper = leases.keep(fence);
      const committed = (through: typeof database): Promise<TurnOutcome> =>
        sessions(through).commit(handle, { ...turn, fence });
      await committed(other.database);
      expect(await committed(database)).toMatchObject({ kind: "replayed" });
      expect(clock.sleepers).toBe(0);
      expect(keeper.signal.aborted).toBe(false);
    }),
  );

  test(
    "by its other keeper's holder ends both, and a stopped one is not kept in mind",
    fixture(async (at) => {
      const { leases, clock } = at;
      const lease = await acquired(at);
      const keepers = [leases.keep(lease), leases.keep(lease)];
      leases.keep(lease).stop();
      await leases.release(lease);
      expect(clock.sleepers).toBe(0);
      for (const { signal } of keepers) expect(signal.aborted).toBe(false);
    }),
  );
}

function reasonTests(fixture: InFixture): void {
  test(
    "is told from one that was taken, for as many holders after it as are remembered",
    fixture(async (at) => {
      const { leases, clock } = at;
      const reasonOf = async (lease: Lease): Promise<unknown> => {
        const { code, details } = await rejection(leases.renew(lease));
        expect(code).toBe("LEASE_LOST");
        return details?.["reason"];
      };
      const given = await acquired(at);
      await leases.release(given);
      const ranOut = await acquired(at, bob, 100);
      clock.advance(100);
      for (let fence = 3; fence <= 32; fence += 1) {
        const next = await acquired(at);
        expect(next.fence).toBe(fence);
        expect(await reasonOf(given)).toBe("released");
        expect(await reasonOf(ranOut)).toBe("overtaken");
        await leases.release(next);
        expect(await reasonOf(next)).toBe("released");
        expect(await reasonOf(given)).toBe("released");
      }
      // One holder more, and nobody knows any longer: then it may have been taken.
      await acquired(at);
      expect(await reasonOf(given)).toBe("overtaken");
    }),
  );
}
