import { describe, expect, test } from "vitest";
import type { LeaseFence } from "../../../src/model/lease.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { holding, inFixture, pathIds, said, spent, twoBranches } from "./fixture.ts";
import type { HeldSession, InFixture, SessionFixture } from "./fixture.ts";

/** Which proofs of a lease a turn commit takes: for a new turn the live one only, for one that is there any or none. */
export function sessionFencesSuite(backend: Backend): void {
  const fixture: InFixture = (body) => inFixture(backend, body);
  describe("the fence of a turn", () => {
    refusalTests(fixture);
    repeatTests(fixture);
  });
  describe("the fence of a tombstone", () => {
    tombstoneTests(fixture);
  });
}

const bob = { owner: "bob", incarnation: "1", process: null };

/** Gives a lease back and lets somebody else have it. */
async function overtake(
  { store, leases }: SessionFixture,
  { handle, fence }: HeldSession,
): Promise<LeaseFence> {
  await leases.release(fence);
  const next = await holding(store, leases, handle, bob);
  expect(next.fence.fence).toBe(fence.fence + 1);
  return next.fence;
}

const refusedFences = {
  "without a fence": () => Promise.resolve(undefined),
  "with a token that is not its own": (_: SessionFixture, { fence }: HeldSession) =>
    Promise.resolve({ ...fence, token: "another" }),
  "with a released one": async (all: SessionFixture, own: HeldSession) => {
    await all.leases.release(own.fence);
    return own.fence;
  },
  "with one that was overtaken": async (all: SessionFixture, own: HeldSession) => {
    await overtake(all, own);
    return own.fence;
  },
  "with one that has run out": (all: SessionFixture, own: HeldSession) => {
    all.clock.advance(86_400_000);
    return Promise.resolve(own.fence);
  },
};

function refusalTests(fixture: InFixture): void {
  for (const [how, fenceOf] of Object.entries(refusedFences))
    test(
      `[A12] ${how} refuses the turn, also at the right revision`,
      fixture(async (all) => {
        const own = await all.held("s");
        await own.commit({ turn: "t0", nodes: [said("before")] });
        const fence = await fenceOf(all, own);
        const { leases: _, ...before } = await all.dump();
        for (const expectation of [{}, { expectedRevision: 1 }])
          expect(
            await rejection(
              all.store.commit(own.handle, {
                turn: "t1",
                nodes: [said("hi")],
                usage: [spent("chat", "m", 1)],
                ...(fence && { fence }),
                ...expectation,
              }),
            ),
          ).toMatchObject({ code: "LEASE_LOST", retryable: true });
        const { leases: left, ...after } = await all.dump();
        expect(after).toEqual(before);
        expect(left).toHaveLength(1);
      }),
    );

  test(
    "[A12] of the holder that came after lets its turn pass and gives the lease back when asked",
    fixture(async (all) => {
      const own = await all.held("s");
      const fence = await overtake(all, own);
      expect(
        await all.store.commit(own.handle, {
          turn: "t1",
          nodes: [said("hi")],
          fence,
          expectedRevision: 0,
          release: true,
        }),
      ).toMatchObject({ kind: "committed", revision: 1 });
      expect(
        await rejection(
          all.store.commit(own.handle, {
            turn: "t2",
            nodes: [said("more")],
            fence,
            expectedRevision: 1,
          }),
        ),
      ).toMatchObject({ code: "LEASE_LOST" });
      const next = await all.leases.acquire(own.handle, bob);
      expect(next).toMatchObject({ kind: "acquired", lease: { fence: 3 } });
    }),
  );
}

function repeatTests(fixture: InFixture): void {
  test(
    "[A13] does not matter to a turn that is repeated: the first, a released, an overtaken and the new one, or none",
    fixture(async (all) => {
      const own = await all.held("s");
      const turn = {
        turn: "t1",
        nodes: [said("hi")],
        components: { tools: { version: 3, value: { n: 1 } } },
      };
      const first = await own.commit({ ...turn, expectedRevision: 0 });
      const repeated = async (fence: LeaseFence | undefined, more: object = {}): Promise<void> => {
        const before = await all.dump();
        expect(
          await all.store.commit(own.handle, {
            ...turn,
            ...(fence && { fence }),
            ...more,
          }),
        ).toEqual({ ...first, kind: "replayed" });
        expect(await all.dump()).toEqual(before);
      };
      await repeated(own.fence);
      await repeated(own.fence, { expectedRevision: 0 });
      await all.leases.release(own.fence);
      await repeated(own.fence);
      await repeated(own.fence, { expectedRevision: 0, release: true });
      const next = await holding(all.store, all.leases, own.handle, bob);
      await next.commit({ turn: "t2", nodes: [said("more")] });
      await repeated(own.fence);
      // Who was overtaken gives nothing back but its own.
      await repeated(own.fence, { expectedRevision: 0, release: true });
      await repeated(next.fence, { expectedRevision: 0 });
      await repeated(undefined);
      await repeated({ ...own.fence, token: "another" });
    }),
  );
}

function tombstoneTests(fixture: InFixture): void {
  for (const [how, fenceOf] of Object.entries(refusedFences))
    test(
      `[R7] ${how} refuses it, also at the right revision`,
      fixture(async (all) => {
        const own = await all.held("s");
        await twoBranches(own);
        const fence = (await fenceOf(all, own)) as LeaseFence;
        const { leases: _, ...before } = await all.dump();
        for (const expectation of [{}, { expectedRevision: 2 }])
          expect(
            await rejection(all.store.tombstone("s", ["d"], { fence, ...expectation })),
          ).toMatchObject({ code: "LEASE_LOST", retryable: true });
        const { leases: __, ...after } = await all.dump();
        expect(after).toEqual(before);
      }),
    );

  test(
    "[R7] hiding the leaf makes a revision, so that a turn prepared before is not committed under another parent",
    fixture(async (all) => {
      const { fence, commit, ...own } = await all.held("s");
      await twoBranches({ fence, commit, ...own });
      const { revision } = await all.store.head("s");
      expect(revision).toBe(2);
      expect(await all.store.tombstone("s", ["d"], { fence })).toEqual({
        hidden: 1,
        revision: 3,
        leaf: "c",
      });
      const before = await all.dump();
      const turn = { turn: "t3", nodes: [said("below d", { id: "e" })] };
      expect(await rejection(commit({ ...turn, expectedRevision: revision }))).toMatchObject({
        code: "REVISION_CONFLICT",
        details: { expected: 2, actual: 3 },
      });
      expect(await all.dump()).toEqual(before);
      expect(await commit({ ...turn, expectedRevision: 3 })).toMatchObject({
        revision: 4,
      });
      expect(await pathIds(all, "s")).toBe("root c e");
    }),
  );

  test(
    "[R7] hides only on top of the revision that is expected, and every hidden node makes one",
    fixture(async (all) => {
      const { fence, ...own } = await all.held("s");
      await twoBranches({ fence, ...own });
      const before = await all.dump();
      expect(
        await rejection(all.store.tombstone("s", ["a"], { fence, expectedRevision: 1 })),
      ).toMatchObject({
        code: "REVISION_CONFLICT",
        details: { expected: 1, actual: 2 },
      });
      expect(await all.dump()).toEqual(before);
      // Not on the active path: a session shows it in its graph all the same.
      expect(await all.store.tombstone("s", ["a"], { fence, expectedRevision: 2 })).toEqual({
        hidden: 1,
        revision: 3,
        leaf: "d",
      });
      expect((await all.store.head("s")).revision).toBe(3);
    }),
  );

  test(
    "[R7] does not matter where all is hidden already: repeating it changes nothing, also without the lease",
    fixture(async (all) => {
      const { fence, ...own } = await all.held("s");
      await twoBranches({ fence, ...own });
      const given = { fence, expectedRevision: 2 };
      await all.store.tombstone("s", ["d"], given);
      const repeated = async (
        options: Parameters<typeof all.store.tombstone>[2],
      ): Promise<void> => {
        const before = await all.dump();
        expect(await all.store.tombstone("s", ["d"], options)).toEqual({
          hidden: 0,
          revision: 3,
          leaf: "c",
        });
        expect(await all.dump()).toEqual(before);
      };
      await repeated(given);
      await all.leases.release(fence);
      await repeated(given);
      await holding(all.store, all.leases, own.handle, bob);
      await repeated(given);
    }),
  );
}
