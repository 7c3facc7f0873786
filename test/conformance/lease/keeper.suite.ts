import { describe, expect, test } from "vitest";
import { HoldfastError } from "../../../src/model/errors.ts";
import type { OwnerId } from "../../../src/kernel.ts";
import { isOpen } from "../wait-fixture.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  acquired,
  ada,
  anotherProcess,
  bob,
  createSession,
  inSession,
  until,
} from "./leased-sessions.ts";
import type { InFixture, Fixture } from "./leased-sessions.ts";

const died = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAW" as OwnerId;
const busy = new HoldfastError("DATABASE_BUSY", "Somebody else writes.");

export function leaseKeeperSuite(backend: Backend): void {
  const fixture = inSession(backend);
  describe("a lease keeper", () => {
    keeperTests(fixture);
  });
  describe("a lease keeper whose lease is lost", () => {
    lossTests(fixture);
  });
  describe("waiting for a lease", () => {
    waitTests(fixture, backend);
  });
}

function keeperTests(fixture: InFixture): void {
  test(
    "[AX22] refuses to renew less often than three times per lease",
    fixture(async (at) => {
      const lease = await acquired(at);
      for (const options of [
        { lease: 30_000, every: 10_001 },
        { lease: "30s", every: "1 min" },
        { lease: 30_000, every: 0 },
        { lease: 0 },
        { lease: 2 },
      ] as const)
        expect(() => at.leases.keep(lease, options)).toThrow(
          expect.objectContaining({ code: "OPTION_INVALID" }),
        );
      expect(at.clock.sleepers).toBe(0);
      at.leases.keep(lease, { lease: 30_000, every: 10_000 }).stop();
      at.leases.keep(lease, { lease: 3 }).stop();
      expect(at.clock.sleepers).toBe(0);
    }),
  );

  test(
    "renews at its interval, so that the lease outlives its first expiry",
    fixture(async (at) => {
      const { leases, clock } = at;
      const keeper = leases.keep(await acquired(at), { lease: 30_000 });
      for (const expiresAt of [41_000, 51_000, 61_000]) {
        clock.advance(10_000);
        await until(() => keeper.lease.expiresAt === expiresAt);
      }
      expect(await leases.acquire("s", bob)).toMatchObject({ kind: "busy" });
      expect(keeper.signal.aborted).toBe(false);
      keeper.stop();
      expect(clock.sleepers).toBe(0);
    }),
  );

  test(
    "renews a lease in time that was taken for less",
    fixture(async (at) => {
      const lease = await acquired(at, ada, 90);
      const keeper = at.leases.keep(lease, { lease: 30_000 });
      at.clock.advance(30);
      await until(() => keeper.lease.expiresAt !== lease.expiresAt);
      expect(keeper.lease.expiresAt).toBe(31_030);
      keeper.stop();
    }),
  );

  test(
    "tries again when a renewal fails for another reason, and goes on as before",
    fixture(async (at) => {
      const { clock, faults, leases } = at;
      const keeper = leases.keep(await acquired(at), { lease: 30_000 });
      faults.failure = busy;
      clock.advance(10_000);
      for (const writes of [2, 3, 4]) {
        await until(() => faults.writes === writes && clock.sleepers === 2);
        if (writes === 4) faults.failure = undefined;
        clock.advance(2_500);
      }
      await until(() => keeper.lease.expiresAt === 48_500);
      expect(keeper.signal.aborted).toBe(false);
      keeper.stop();
    }),
  );

  test(
    "does nothing more once it is stopped, and leaves the lease",
    fixture(async (at) => {
      const { clock, leases, faults } = at;
      const keeper = leases.keep(await acquired(at), { lease: 30_000 });
      keeper.stop();
      const { writes } = faults;
      clock.advance(29_999);
      expect(await leases.read("s")).toMatchObject({ owner: "ada" });
      clock.advance(1);
      expect(faults.writes).toBe(writes);
      expect(keeper.signal.aborted).toBe(false);
    }),
  );
}

function lossTests(fixture: InFixture): void {
  /** Keeps a lease for as long as it can, and answers with why it could not. */
  const kept = async (
    at: Fixture,
  ): Promise<{
    readonly signal: AbortSignal;
    readonly lost: () => Promise<unknown>;
  }> => {
    const { signal } = at.leases.keep(await acquired(at), { lease: 30_000 });
    const lost = async (): Promise<unknown> => {
      await until(() => signal.aborted && at.clock.sleepers === 0);
      return signal.reason;
    };
    return { signal, lost };
  };

  test(
    "tells its holder when somebody else has it",
    fixture(async (at) => {
      const { leases, faults, clock, database } = at;
      const { lost } = await kept(at);
      faults.die(database.owner);
      const seen = { fence: 1, process: database.owner };
      const outcome = await leases.reclaim("s", bob, seen);
      expect(outcome.kind).toBe("acquired");
      clock.advance(10_000);
      expect(await lost()).toMatchObject({
        code: "LEASE_LOST",
        details: { session: "s", reason: "overtaken" },
      });
    }),
  );

  test(
    "tells its holder when the session is gone",
    fixture(async (at) => {
      const { lost } = await kept(at);
      await createSession(at.database, "s", 2);
      at.clock.advance(10_000);
      expect(await lost()).toMatchObject({ code: "SESSION_DELETED" });
    }),
  );

  test(
    "tells its holder when the database is closed",
    fixture(async (at) => {
      const { lost } = await kept(at);
      await at.database.close();
      at.clock.advance(10_000);
      expect(await lost()).toMatchObject({ code: "DATABASE_CLOSED" });
    }),
  );

  test(
    "tells its holder at the instant of expiry when renewals fail, with the last failure as cause",
    fixture(async (at) => {
      const { clock, faults } = at;
      const { signal, lost } = await kept(at);
      faults.failure = busy;
      clock.advance(10_000);
      for (let elapsed = 10_000; elapsed < 30_000; elapsed += 2_500) {
        await until(() => clock.sleepers === 2);
        expect(signal.aborted).toBe(false);
        clock.advance(2_500);
      }
      expect(signal.aborted).toBe(true);
      expect(await lost()).toMatchObject({
        code: "LEASE_LOST",
        details: { reason: "expired" },
        cause: busy,
      });
    }),
  );

  test(
    "tells its holder at the instant of expiry when a renewal hangs",
    fixture(async (at) => {
      const { clock, faults } = at;
      const { signal, lost } = await kept(at);
      let goOn = (): void => undefined;
      faults.failure = new Promise((resolve) => (goOn = resolve));
      clock.advance(29_999);
      expect(signal.aborted).toBe(false);
      clock.advance(1);
      expect(signal.aborted).toBe(true);
      goOn();
      expect(await lost()).toMatchObject({
        code: "LEASE_LOST",
        details: { reason: "expired" },
      });
    }),
  );
}

function waitTests(fixture: InFixture, backend: Backend): void {
  const wait = { lease: 30_000, timeout: "1 day" } as const;
  /** Waits for the lease that somebody else has, until the waiter sleeps. */
  const waiting = async (
    at: Fixture,
    process: OwnerId | null,
  ): Promise<{ readonly promise: Promise<unknown> }> => {
    await at.leases.acquire("s", { ...ada, process });
    const before = at.faults.writes;
    const promise = at.leases.waitForLease("s", bob, wait);
    await until(() => at.faults.writes > before && at.clock.sleepers === 1);
    return { promise };
  };

  test(
    "ends at once when nobody holds it",
    fixture(async ({ leases, faults }) => {
      expect(await leases.waitForLease("s", bob, { timeout: 0 })).toMatchObject({
        owner: "bob",
        fence: 1,
        expiresAt: 31_000,
      });
      expect(faults.listeners).toBe(0);
    }),
  );

  test(
    "ends when it is given back",
    fixture(async (at) => {
      const lease = await acquired(at);
      const { promise } = await waiting(at, at.database.owner);
      expect(await isOpen(promise)).toBe(true);
      await at.leases.release(lease);
      expect(await promise).toMatchObject({ owner: "bob", fence: 2 });
      expect(at.clock.sleepers).toBe(0);
    }),
  );

  test(
    "ends when it runs out, and not before",
    fixture(async (at) => {
      const { promise } = await waiting(at, null);
      at.clock.advance(29_999);
      expect(await isOpen(promise)).toBe(true);
      at.clock.advance(1);
      expect(await promise).toMatchObject({ owner: "bob", fence: 2 });
    }),
  );

  test(
    "ends when its holder dies",
    fixture(async (at) => {
      const { promise } = await waiting(at, died);
      expect(await isOpen(promise)).toBe(true);
      at.faults.die(died);
      expect(await promise).toMatchObject({ owner: "bob", fence: 2 });
    }),
  );

  test(
    "ends in vain after its timeout, and by its signal",
    fixture(async (at) => {
      const { leases, clock } = at;
      await acquired(at);
      const late = rejection(leases.waitForLease("s", bob, { timeout: 10 }));
      await until(() => clock.sleepers === 1);
      clock.advance(10);
      expect(await late).toMatchObject({ code: "DEADLINE_EXCEEDED" });
      const abort = new AbortController();
      const given = { ...wait, signal: abort.signal };
      const gaveUp = rejection(leases.waitForLease("s", bob, given));
      await until(() => clock.sleepers === 1);
      abort.abort();
      expect(await gaveUp).toMatchObject({ code: "ABORTED" });
      expect(at.faults.listeners).toBe(0);
    }),
  );

  test(
    "leaves no lease behind that was granted to somebody who gave up",
    fixture(async (at) => {
      const { leases, faults } = at;
      const abort = new AbortController();
      let goOn = (): void => undefined;
      faults.failure = new Promise((resolve) => (goOn = resolve));
      const given = { ...wait, signal: abort.signal };
      const gaveUp = rejection(leases.waitForLease("s", bob, given));
      await until(() => faults.writes === 1);
      abort.abort();
      expect(await gaveUp).toMatchObject({ code: "ABORTED" });
      faults.failure = undefined;
      goOn();
      expect(await acquired(at, ada)).toMatchObject({ owner: "ada" });
    }),
  );

  test(
    "gives a lease back that was granted when its caller had just given up",
    fixture(async ({ leases, faults }) => {
      const abort = new AbortController();
      const commits: string[] = [];
      faults.onCommit = (operation) => {
        commits.push(operation);
        abort.abort();
      };
      const error = await rejection(
        leases.waitForLease("s", bob, { lease: "1 day", signal: abort.signal }),
      );
      expect(error).toMatchObject({ code: "ABORTED" });
      await until(() => commits.length > 1);
      expect(commits).toEqual(["acquireLease", "releaseLease"]);
      expect(await leases.acquire("s", ada)).toMatchObject({
        kind: "acquired",
        lease: { owner: "ada", fence: 2 },
      });
    }),
  );

  if (backend.survives)
    test(
      "ends when another process gives it back",
      fixture(async (at) => {
        const theirs = await anotherProcess(at);
        const lease = await acquired(theirs);
        const { promise } = await waiting(at, null);
        await theirs.leases.release(lease);
        expect(await promise).toMatchObject({ owner: "bob", fence: 2 });
      }),
    );
}
