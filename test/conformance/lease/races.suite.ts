import { expect, test } from "vitest";
import type { OwnerId } from "../../../src/kernel.ts";
import type { Backend } from "../backend.ts";
import { ada, anotherProcess, bob, inSession } from "./leased-sessions.ts";

const stranger = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAV" as OwnerId;
const died = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAW" as OwnerId;

/** Leases that several processes ask for at once: only where there can be several. */
export function leaseRacesSuite(backend: Backend): void {
  const fixture = inSession(backend);
  if (!backend.survives) return;
  test(
    "[A28] of two processes that claim a lease first at once, one gets it",
    fixture(async (mine) => {
      const theirs = await anotherProcess(mine);
      for (let round = 0; round < 10; round += 1) {
        const outcomes = await Promise.all([
          mine.leases.acquire("s", ada),
          theirs.leases.acquire("s", bob),
        ]);
        const won = outcomes.flatMap((outcome) =>
          outcome.kind === "acquired" ? [outcome.lease] : [],
        );
        expect(won.map(({ fence }) => fence)).toEqual([round + 1]);
        for (const lease of won) await mine.leases.release(lease);
      }
    }),
  );

  test(
    "[A26] of two processes that reclaim a lease at once, one gets it",
    fixture(async (mine) => {
      const theirs = await anotherProcess(mine);
      for (const { faults } of [mine, theirs]) faults.die(died);
      await mine.leases.acquire("s", { ...ada, process: died });
      const outcomes = await Promise.all(
        [mine, theirs].map(({ leases }, index) =>
          leases.reclaim(
            "s",
            { ...bob, incarnation: `${index}`, process: null },
            { process: died, fence: 1 },
          ),
        ),
      );
      expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["acquired", "busy"]);
    }),
  );

  test(
    "[A29] a process that lives, one that left in order and one nobody knows are not proven dead",
    fixture(async (mine) => {
      const theirs = await anotherProcess(mine);
      const { leases } = mine;
      const { owner: process } = theirs.database;
      await leases.acquire("s", { ...ada, process });
      expect(await leases.reclaim("s", bob, { fence: 1, process })).toMatchObject({ kind: "busy" });
      await theirs.database.close();
      expect(await leases.reclaim("s", bob, { fence: 1, process })).toMatchObject({ kind: "busy" });
      expect(await mine.database.liveness(stranger)).toBe("unknown");
    }),
  );
}
