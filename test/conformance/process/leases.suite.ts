import { describe, expect, test } from "vitest";
import type { ProcessId } from "../../../src/processes.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { ada, adaAgain, bob, claimed, registered } from "../lease/leased-processes.ts";
import { onProcesses, fixtureOf, stored } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";

type On = (body: (fixture: ProcessFixture) => Promise<void>) => () => Promise<void>;

export function processLeasesSuite(backend: Backend): void {
  const on: On = (body) => onProcesses(backend, body);
  describe("the lease of a process", () => {
    claimTests(on);
    fenceTests(on);
    keeperTests(on);
    if (backend.survives) racingTests(on);
  });
}

function claimTests(on: On): void {
  test(
    "[A73] another owner is told who holds it; claiming one's own again ends the lease before",
    on(async (fixture) => {
      const { store } = fixture;
      await registered(fixture);
      const first = await claimed(fixture);
      expect(first).toMatchObject({
        id: "p",
        fence: 1,
        claimedAt: 1_000_000,
        expiresAt: 1_001_000,
      });
      for (const other of [bob, adaAgain])
        expect(await store.claim("p", other)).toMatchObject({
          kind: "busy",
          holder: { owner: "ada", fence: 1, expiresAt: 1_001_000 },
        });
      expect(await store.holder("p")).toMatchObject({ owner: "ada" });
      expect(await store.holder("p")).not.toHaveProperty("token");
      const second = await claimed(fixture);
      expect(second.fence).toBe(2);
      expect(second.token).not.toBe(first.token);
      expect(await rejection(store.renew(first))).toMatchObject({
        code: "PROCESS_LEASE_LOST",
        details: { id: "p", reason: "overtaken" },
      });
    }),
  );

  test(
    "[A73] a renewed lease outlives its first end, and a release lets the next one have a higher fence",
    on(async (fixture) => {
      const { store, clock } = fixture;
      await registered(fixture);
      const lease = await claimed(fixture);
      clock.advance(900);
      const renewed = await store.renew(lease, { lease: 1_000 });
      expect(renewed.expiresAt).toBe(1_001_900);
      clock.advance(900);
      expect(await store.claim("p", bob)).toMatchObject({ kind: "busy" });
      expect(await store.release(renewed)).toBe(true);
      expect(await store.release(renewed)).toBe(false);
      const next = await claimed(fixture, bob);
      expect(next.fence).toBe(2);
      // A release that comes late frees nothing of the one who has it now.
      expect(await store.release(lease)).toBe(false);
      expect(await store.renew(next)).toMatchObject({ fence: 2 });
    }),
  );

  test(
    "a lease of a process that is not there is released without an error, and renewed and begun with one",
    on(async (fixture) => {
      const { store } = fixture;
      await registered(fixture);
      const lease = { ...(await claimed(fixture)), id: "nobody" as ProcessId };
      expect(await store.release(lease)).toBe(false);
      for (const call of [store.renew, store.start])
        expect(await rejection(call(lease))).toMatchObject({
          code: "PROCESS_NOT_FOUND",
        });
    }),
  );

  test(
    "[A73] a lease that has run out goes to the next one, and no clock that is set back revives it",
    on(async (fixture) => {
      const { store, clock } = fixture;
      await registered(fixture);
      const lease = await claimed(fixture);
      clock.advance(1_000);
      expect(await rejection(store.renew(lease))).toMatchObject({
        code: "PROCESS_LEASE_LOST",
        details: { reason: "expired" },
      });
      clock.set(1_000_100);
      expect(await rejection(store.append("p", { type: "e", fence: lease }))).toMatchObject({
        details: { reason: "expired" },
      });
      expect(await claimed(fixture, bob)).toMatchObject({ fence: 2 });
    }),
  );

  test(
    "an append that finds its lease over ends it for good",
    on(async (fixture) => {
      const { store, clock } = fixture;
      await registered(fixture);
      const lease = await claimed(fixture);
      clock.advance(1_000);
      expect(await rejection(store.append("p", { type: "e", fence: lease }))).toMatchObject({
        code: "PROCESS_LEASE_LOST",
      });
      clock.set(1_000_000);
      expect(await rejection(store.append("p", { type: "e", fence: lease }))).toMatchObject({
        code: "PROCESS_LEASE_LOST",
      });
    }),
  );

  test(
    "a lease that a read has shown as over stays over when the clock is set back",
    on(async (fixture) => {
      const { store, clock } = fixture;
      for (const id of ["p", "q", "r"]) {
        await registered(fixture, id);
        await claimed(fixture, ada, id);
      }
      const start = clock.now();
      clock.advance(1_000);
      expect(await store.holder("p")).toBeUndefined();
      clock.set(start);
      expect(await store.holder("p")).toBeUndefined();
      expect(await store.holder("q")).toMatchObject({ owner: "ada" });
      clock.advance(1_000);
      expect((await store.worklist()).items).toMatchObject([
        { process: { id: "p" }, lease: "expired" },
        { process: { id: "q" }, lease: "expired" },
        { process: { id: "r" }, lease: "expired" },
      ]);
      clock.set(start);
      expect((await store.worklist()).items.map(({ process }) => process.id)).toEqual([
        "p",
        "q",
        "r",
      ]);
      expect(await store.holder("r")).toBeUndefined();
      expect(await claimed(fixture, bob, "r")).toMatchObject({ fence: 2 });
    }),
  );

  test(
    "a dead owner's lease is taken at once, by one of those who saw it",
    on(async (fixture) => {
      const { store, faults, database } = fixture;
      await registered(fixture);
      await claimed(fixture);
      faults.die(database.owner);
      const outcomes = await Promise.all(
        [bob, adaAgain].map((claimant) => store.claim("p", { ...claimant, process: null })),
      );
      const kinds = outcomes.map(({ kind }) => kind).toSorted();
      expect(kinds).toEqual(["acquired", "busy"]);
      expect(await store.holder("p")).toMatchObject({ fence: 2 });
    }),
  );

  test(
    "what has ended cannot be claimed; nor can a lease that is none be shown",
    on(async (fixture) => {
      const { store, database } = fixture;
      await registered(fixture);
      const before = await stored(database);
      for (const call of [
        () => store.renew({} as never),
        () => store.release(undefined as never),
        () => store.start({ id: "p" } as never),
        () => store.keep(null as never),
      ])
        expect(await rejection(Promise.resolve().then<unknown>(call))).toMatchObject({
          code: "OPTION_INVALID",
        });
      expect(await stored(database)).toEqual(before);
      await store.complete("p", { kind: "completed", value: 1 });
      expect(await rejection(store.claim("p", ada))).toMatchObject({
        code: "PROCESS_TERMINAL",
      });
    }),
  );
}

function fenceTests(on: On): void {
  test(
    "a lease that a prepared event finds to have run out stays over when the clock is set back",
    on(async (fixture) => {
      const { store, clock, database } = fixture;
      await registered(fixture);
      const fence = await claimed(fixture);
      const append = store.append.prepare("p", { type: "e", fence });
      const late = () =>
        rejection(
          database.write("report", function* () {
            yield* append();
          }),
        );
      const lost = {
        code: "PROCESS_LEASE_LOST",
        details: { reason: "expired" },
      };
      clock.advance(1_000);
      expect(await late()).toMatchObject(lost);
      clock.set(1_000_500);
      expect(await late()).toMatchObject(lost);
      expect(await store.holder("p")).toBeUndefined();
    }),
  );

  test(
    "[AX11] a worker whose lease was taken over changes nothing",
    on(async (fixture) => {
      const { store, clock, database } = fixture;
      await registered(fixture);
      const stale = await claimed(fixture);
      clock.advance(1_000);
      const lease = await claimed(fixture, bob);
      const second = { signal: "go", ordinal: 2 };
      const wait = await store.setWait("p", second, { fence: lease });
      const before = await stored(database);
      const lost = {
        code: "PROCESS_LEASE_LOST",
        details: { reason: "overtaken" },
      };
      const output = { kind: "completed", value: 1 } as const;
      const ref = (id: string) => ({ backend: "ci", id });
      for (const call of [
        () => store.append("p", { type: "e", fence: stale }),
        () => store.complete("p", output, { fence: stale }),
        () => store.setWait("p", { signal: "go", ordinal: 1 }, { fence: stale }),
        () => store.clearWait("p", { fence: stale }),
        () => store.setExternalRef("p", ref("stale"), { fence: stale }),
        () => store.start(stale),
      ])
        expect(await rejection(call())).toMatchObject(lost);
      // Without showing a lease nobody speaks for who works on it.
      for (const call of [
        () => store.complete("p", output),
        () => store.setExternalRef("p", ref("other")),
        () => store.setWait("p", { signal: "go", ordinal: 1 }),
        () => store.clearWait("p"),
      ])
        expect(await rejection(call())).toMatchObject({
          code: "PROCESS_LEASED",
          details: { id: "p", owner: "bob" },
        });
      // What is so already may be said again by anybody.
      expect(await store.setWait("p", second)).toEqual(wait);
      expect(await stored(database)).toEqual(before);
      expect(await store.setExternalRef("p", ref("own"), { fence: lease })).toBe(true);
      expect(await store.clearWait("p", { fence: lease })).toBe(true);
      expect(await store.clearWait("p")).toBe(false);
      // Known already, so nothing is changed by who was overtaken.
      expect(await store.setExternalRef("p", ref("own"), { fence: stale })).toBe(false);
      expect(await store.complete("p", output, { fence: lease })).toMatchObject({
        status: "completed",
      });
      // Its answer was lost: the same end again is fine, also for who was overtaken.
      expect(await store.complete("p", output, { fence: stale })).toMatchObject({ isReplay: true });
    }),
  );

  test(
    "others may still tell a leased process things",
    on(async (fixture) => {
      const { store } = fixture;
      await registered(fixture);
      await claimed(fixture);
      await store.signal("p", "go", 1, { key: "a" });
      await store.cancel("p", { reason: "enough" });
      expect((await store.get("p"))?.sequence).toBe(2);
    }),
  );

  test(
    "beginning is recorded once for each lease",
    on(async (fixture) => {
      const { store, clock } = fixture;
      await registered(fixture);
      clock.advance(1);
      const lease = await claimed(fixture);
      expect(await store.start(lease)).toBe(1);
      expect(await store.start(lease)).toBe(1);
      clock.advance(1_000);
      expect(await store.start(await claimed(fixture, bob))).toBe(2);
      expect(await store.get("p")).toMatchObject({
        startedAt: 1_000_001,
        attempts: 2,
        sequence: 2,
      });
    }),
  );
}

function keeperTests(on: On): void {
  test(
    "[AX22] a keeper renews at least three times per lease, or is refused",
    on(async (fixture) => {
      await registered(fixture);
      const lease = await claimed(fixture);
      expect(() => fixture.store.keep(lease, { lease: 900, every: 301 })).toThrow("three times");
    }),
  );

  test(
    "a keeper renews, and tells its holder at once when the lease is lost",
    on(async (fixture) => {
      const { store, clock } = fixture;
      await registered(fixture);
      const keeper = store.keep(await claimed(fixture), { lease: 900 });
      clock.advance(300);
      while (keeper.lease.expiresAt < 1_001_200)
        await new Promise((resolve) => setImmediate(resolve));
      await store.claim("p", ada);
      clock.advance(300);
      while (!keeper.signal.aborted) await new Promise((resolve) => setImmediate(resolve));
      expect(keeper.signal.reason).toMatchObject({
        code: "PROCESS_LEASE_LOST",
        details: { reason: "overtaken" },
      });
      keeper.stop();
    }),
  );
}

function racingTests(on: On): void {
  test(
    "[A73] of two processes that claim at once, one gets it, and fences only grow",
    on(async (mine) => {
      const { place, clock } = mine;
      const opened = await place.open({ isWithoutPoll: true });
      const theirs = fixtureOf(place, opened, clock);
      await registered(mine);
      for (let round = 1; round <= 5; round += 1) {
        const outcomes = await Promise.all([
          mine.store.claim("p", ada, { lease: 10 }),
          theirs.store.claim("p", bob, { lease: 10 }),
        ]);
        const won = outcomes.filter(({ kind }) => kind === "acquired");
        expect(won).toHaveLength(1);
        expect(won[0]).toMatchObject({ lease: { fence: round } });
        clock.advance(10);
      }
      await opened.close();
    }),
  );
}
