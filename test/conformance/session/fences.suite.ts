import { describe, expect, test } from "vitest";
import type { LeaseFence } from "../../../src/model/lease.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { holding, inScene, said, spent } from "./fixture.ts";
import type { HeldSession, InScene, SessionScene } from "./fixture.ts";

/** Which proofs of a lease a turn commit takes: for a new turn the live one only, for one that is there any or none. */
export function sessionFencesSuite(backend: Backend): void {
  const scene: InScene = (body) => inScene(backend, body);
  describe("the fence of a turn", () => {
    refusalTests(scene);
    repeatTests(scene);
  });
}

const bob = { owner: "bob", incarnation: "1", process: null };

/** Gives a lease back and lets somebody else have it. */
async function overtake(
  { store, leases }: SessionScene,
  { handle, fence }: HeldSession,
): Promise<LeaseFence> {
  await leases.release(fence);
  const next = await holding(store, leases, handle, bob);
  expect(next.fence.fence).toBe(fence.fence + 1);
  return next.fence;
}

function refusalTests(scene: InScene): void {
  const fences = {
    "without a fence": () => Promise.resolve(undefined),
    "with a token that is not its own": (
      _: SessionScene,
      { fence }: HeldSession,
    ) => Promise.resolve({ ...fence, token: "another" }),
    "with a released one": async (all: SessionScene, own: HeldSession) => {
      await all.leases.release(own.fence);
      return own.fence;
    },
    "with one that was overtaken": async (
      all: SessionScene,
      own: HeldSession,
    ) => {
      await overtake(all, own);
      return own.fence;
    },
    "with one that has run out": (all: SessionScene, own: HeldSession) => {
      all.clock.advance(86_400_000);
      return Promise.resolve(own.fence);
    },
  };
  for (const [how, fenceOf] of Object.entries(fences))
    test(
      `[A12] ${how} refuses the turn, also at the right revision`,
      scene(async (all) => {
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
    scene(async (all) => {
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

function repeatTests(scene: InScene): void {
  test(
    "[A13] does not matter to a turn that is repeated: the first, a released, an overtaken and the new one, or none",
    scene(async (all) => {
      const own = await all.held("s");
      const turn = {
        turn: "t1",
        nodes: [said("hi")],
        components: { tools: { version: 3, value: { n: 1 } } },
      };
      const first = await own.commit({ ...turn, expectedRevision: 0 });
      const repeated = async (
        fence: LeaseFence | undefined,
        more: object = {},
      ): Promise<void> => {
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
