import { describe, expect, test } from "vitest";
import type { OwnerId } from "../../../src/kernel.ts";
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
  stored,
} from "./leased-sessions.ts";
import type { InFixture } from "./leased-sessions.ts";

const stranger = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAV" as OwnerId;
const died = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAW" as OwnerId;

export function leaseSuite(backend: Backend): void {
  const fixture = inSession(backend);
  describe("a session's lease", () => {
    holdingTests(fixture);
  });
  describe("fences", () => {
    fenceTests(fixture);
  });
  describe("the lease of a dead holder", () => {
    reclaimTests(fixture);
  });
  describe("a lease and the clock", () => {
    clockTests(fixture);
  });
}

function holdingTests(fixture: InFixture): void {
  test(
    "is refused for a session that is not there, and for a generation that is gone",
    fixture(async ({ leases, database }) => {
      expect(await rejection(leases.acquire("other", ada))).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
      await createSession(database, "s", 2);
      expect(await rejection(leases.acquire({ id: "s", generation: 1 }, ada))).toMatchObject({
        code: "SESSION_DELETED",
      });
      expect(await rejection(leases.acquire("s", { ...ada, owner: "" }))).toMatchObject({
        code: "NAME_INVALID",
      });
      expect(
        await rejection(leases.acquire("s", { ...ada, process: "1" as OwnerId })),
      ).toMatchObject({ code: "ID_MALFORMED" });
    }),
  );

  test(
    "[A20] is given to the same incarnation again, with its token, its fence and no earlier expiry",
    fixture(async (at) => {
      const first = await acquired(at, ada, 30_000);
      expect(first).toMatchObject({
        session: { id: "s", generation: 1 },
        fence: 1,
        claimedAt: 1_000,
        expiresAt: 31_000,
      });
      expect(first.token).toMatch(/^[0-9a-f]{32}$/);
      at.clock.advance(500);
      expect(await acquired(at, ada, 10)).toEqual(first);
      expect(await acquired(at, ada, 40_000)).toEqual({
        ...first,
        expiresAt: 41_500,
      });
    }),
  );

  test(
    "[A21] is busy for another incarnation of the same owner, and for another owner",
    fixture(async ({ leases, database }) => {
      await leases.acquire("s", ada, { lease: "30s" });
      const before = await stored(database);
      for (const claimant of [adaAgain, bob])
        expect(await leases.acquire("s", claimant)).toEqual({
          kind: "busy",
          holder: {
            ...ada,
            process: database.owner,
            fence: 1,
            claimedAt: 1_000,
            expiresAt: 31_000,
          },
        });
      expect(await stored(database)).toEqual(before);
    }),
  );

  test(
    "[A22] renewed keeps its token and never gets shorter; a wrong token is refused",
    fixture(async (at) => {
      const { leases, clock, database } = at;
      const lease = await acquired(at, ada, 30_000);
      const before = await stored(database);
      const wrong = { ...lease, token: lease.token.replace(/^./, "x") };
      for (const lost of [wrong, { ...lease, fence: 2 }, { ...lease, incarnation: "second" }])
        expect(await rejection(leases.renew(lost))).toMatchObject({
          code: "LEASE_LOST",
          retryable: true,
          details: { session: "s", reason: "overtaken" },
        });
      expect(await stored(database)).toEqual(before);
      clock.advance(1_000);
      expect(await leases.renew(lease, { lease: 10 })).toEqual(lease);
      expect(await leases.renew(lease, { lease: "30s" })).toEqual({
        ...lease,
        expiresAt: 32_000,
      });
    }),
  );

  test(
    "[A23] stays when somebody with a wrong token, or its holder of old, gives it back",
    fixture(async (at) => {
      const { leases, clock, database } = at;
      const old = await acquired(at, ada, 10);
      expect(await leases.release({ ...old, token: "guessed" })).toBe(false);
      expect((await leases.read("s"))?.owner).toBe("ada");
      clock.advance(10);
      await acquired(at, bob);
      const before = await stored(database);
      expect(await leases.release(old)).toBe(false);
      expect(await stored(database)).toEqual(before);
    }),
  );

  test(
    "is read without its token, and as free once it is given back",
    fixture(async (at) => {
      const { leases, database } = at;
      expect(await leases.read("s")).toBeUndefined();
      const lease = await acquired(at);
      expect(await leases.read("s")).toEqual({
        ...ada,
        process: database.owner,
        fence: 1,
        claimedAt: 1_000,
        expiresAt: 31_000,
      });
      expect(await leases.release(lease)).toBe(true);
      expect(await leases.read("s")).toBeUndefined();
      expect(await leases.release(lease)).toBe(false);
      expect(await rejection(leases.renew(lease))).toMatchObject({
        code: "LEASE_LOST",
        details: { reason: "released" },
      });
    }),
  );

  test(
    "of a deleted session is given back without an error, and renewed with one",
    fixture(async (at) => {
      const lease = await acquired(at);
      await createSession(at.database, "s", 2);
      expect(await at.leases.release(lease)).toBe(false);
      expect(await rejection(at.leases.renew(lease))).toMatchObject({
        code: "SESSION_DELETED",
      });
    }),
  );
}

function fenceTests(fixture: InFixture): void {
  test(
    "[A24] grow after a release, and after a lease that was over on arrival",
    fixture(async (at) => {
      const { leases } = at;
      const first = await acquired(at, ada);
      await leases.release(first);
      const second = await acquired(at, ada, 0);
      expect(second).toMatchObject({ fence: 2, expiresAt: 1_000 });
      expect(second.token).not.toBe(first.token);
      expect(await rejection(leases.renew(second))).toMatchObject({
        details: { reason: "expired" },
      });
      expect(await acquired(at, bob)).toMatchObject({ fence: 3 });
    }),
  );

  test(
    "[A24] go on where they were when a session is deleted and created again",
    fixture(async (at) => {
      const { database, leases } = at;
      await leases.release(await acquired(at, ada));
      await acquired(at, ada);
      await createSession(database, "s", 2);
      await createSession(database, "s", 3);
      expect(await acquired(at, bob)).toMatchObject({
        session: { id: "s", generation: 3 },
        fence: 3,
      });
    }),
  );
}

function reclaimTests(fixture: InFixture): void {
  const held = { fence: 1, process: died };

  test(
    "[A25] is busy for a plain claim, goes to who reclaims it, and not to a second one that saw the same",
    fixture(async ({ leases, faults }) => {
      await leases.acquire("s", { ...ada, process: died });
      faults.die(died);
      expect(await leases.acquire("s", bob)).toMatchObject({ kind: "busy" });
      expect(await leases.reclaim("s", bob, held)).toMatchObject({
        kind: "acquired",
        lease: { owner: "bob", fence: 2 },
      });
      expect(await leases.reclaim("s", adaAgain, held)).toMatchObject({
        kind: "busy",
        holder: { owner: "bob", fence: 2 },
      });
    }),
  );

  test(
    "[A26] goes to exactly one of those who reclaim it at once",
    fixture(async ({ leases, faults }) => {
      await leases.acquire("s", { ...ada, process: died });
      faults.die(died);
      const outcomes = await Promise.all(
        ["b", "c", "d", "e"].map((owner) =>
          leases.reclaim("s", { owner, incarnation: "first" }, held),
        ),
      );
      const winners = outcomes.filter(({ kind }) => kind === "acquired");
      expect(winners).toMatchObject([{ lease: { fence: 2 } }]);
    }),
  );

  test(
    "[A27] stays with a holder that nobody knows, that lives, or that named no process",
    fixture(async (at) => {
      const { leases, database, faults } = at;
      faults.die(died);
      for (const process of [stranger, database.owner, null]) {
        const outcome = await leases.acquire("s", { ...ada, process });
        const fence = outcome.kind === "acquired" ? outcome.lease.fence : 0;
        for (const seen of [process, died])
          expect(await leases.reclaim("s", bob, { fence, process: seen })).toMatchObject({
            kind: "busy",
            holder: { owner: "ada", process },
          });
        if (outcome.kind === "acquired") await leases.release(outcome.lease);
      }
    }),
  );

  test(
    "[A27] stays when two processes share it and one of them dies",
    fixture(async ({ leases, faults }) => {
      await leases.acquire("s", { ...ada, process: died });
      await leases.acquire("s", ada);
      faults.die(died);
      expect(await leases.reclaim("s", bob, held)).toMatchObject({
        kind: "busy",
        holder: { process: null },
      });
    }),
  );

  test(
    "is acquired like any other when it has run out or was given back",
    fixture(async ({ leases, clock }) => {
      await leases.acquire("s", { ...ada, process: stranger }, { lease: 10 });
      clock.advance(10);
      expect(await leases.reclaim("s", bob, { fence: 1, process: stranger })).toMatchObject({
        kind: "acquired",
        lease: { fence: 2 },
      });
    }),
  );
}

function clockTests(fixture: InFixture): void {
  test(
    "it does not get shorter when the clock is set back",
    fixture(async (at) => {
      const lease = await acquired(at, ada, 100);
      at.clock.set(500);
      expect(await at.leases.acquire("s", bob)).toMatchObject({ kind: "busy" });
      expect(await at.leases.renew(lease, { lease: 100 })).toEqual(lease);
      expect(await acquired(at, ada, 100)).toEqual(lease);
    }),
  );

  test(
    "it does not come back when it has run out and the clock is set back",
    fixture(async (at) => {
      const { leases, clock } = at;
      const over = await acquired(at, ada, 0);
      clock.set(500);
      expect(await leases.read("s")).toBeUndefined();
      expect(await rejection(leases.renew(over))).toMatchObject({
        details: { reason: "expired" },
      });
      const lease = await acquired(at, ada, 100);
      clock.set(600);
      // Its holder was told that it has run out, and that stays true.
      expect(await rejection(leases.renew(lease))).toMatchObject({
        details: { reason: "expired" },
      });
      clock.set(550);
      expect(await rejection(leases.renew(lease))).toMatchObject({
        details: { reason: "expired" },
      });
      expect(await acquired(at, bob)).toMatchObject({ fence: 3 });
    }),
  );

  test(
    "it stays over once a read has shown it so, also for another handle and a clock that is set back",
    fixture(async (at) => {
      const { leases, clock } = at;
      const lease = await acquired(at, ada, 100);
      clock.set(1_100);
      expect(await leases.read("s")).toBeUndefined();
      clock.set(1_050);
      expect(await leases.read("s")).toBeUndefined();
      expect(await (await otherHandles(at)).leases.read("s")).toBeUndefined();
      expect(await rejection(leases.renew(lease))).toMatchObject({
        code: "LEASE_LOST",
        details: { reason: "expired" },
      });
      expect(await acquired(at, bob)).toMatchObject({ fence: 2 });
    }),
  );

  test(
    "a read records once that it is over, and answers also when that cannot be recorded",
    fixture(async (at) => {
      const { leases, clock, faults } = at;
      await acquired(at, ada, 100);
      expect(await leases.read("s")).toMatchObject({ owner: "ada" });
      clock.set(1_100);
      faults.failure = new Error("The disk is full.");
      expect(await leases.read("s")).toBeUndefined();
      faults.failure = undefined;
      const before = faults.writes;
      for (let reads = 0; reads < 3; reads += 1) expect(await leases.read("s")).toBeUndefined();
      expect(faults.writes - before).toBe(1);
    }),
  );

  test(
    "it ends at the last instant there is, however long it was asked for",
    fixture(async (at) => {
      expect(await acquired(at, ada, Number.MAX_SAFE_INTEGER)).toMatchObject({
        expiresAt: 8.64e15,
      });
    }),
  );
}
