import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { leases, sessions, type Sessions } from "../../src/sessions.ts";
import { holding, said } from "../conformance/session/fixture.ts";
import type { HeldSession } from "../conformance/session/fixture.ts";
import { isDeep } from "../depth.ts";
import { withPlace } from "./place.ts";

interface Fixture {
  /** One session through two pools. */
  readonly stores: readonly [Sessions, Sessions];
  readonly held: HeldSession;
}

/** Waiting for a row is Postgres' own: on SQLite one waits for the other before it begins. */
function fixture(body: (fixture: Fixture) => Promise<void>): () => Promise<void> {
  return () =>
    withPlace(async (place) => {
      const clock = manualClock(1_000);
      const first = await place.open({ clock });
      const second = await place.open({ clock });
      const stores = [sessions(first), sessions(second)] as const;
      const { id, generation } = await stores[0].create("s");
      const held = await holding(stores[0], leases(first), { id, generation });
      await held.commit({ turn: "t0", nodes: [said("root", { id: "root" })] });
      await body({ stores, held });
    });
}

const rounds = isDeep ? 200 : 15;

describe("two pools that change one session at once", () => {
  test(
    "each node follows the one committed before it, whoever waited",
    fixture(async ({ stores, held: { handle, fence } }) => {
      for (let round = 0; round < rounds; round += 1)
        await Promise.all(
          stores.map((store, index) =>
            store.commit(handle, {
              turn: `${index}-${round}`,
              fence,
              nodes: [said("next")],
            }),
          ),
        );
      const { nodes } = await stores[0].path(handle);
      expect(nodes).toHaveLength(1 + 2 * rounds);
      expect(await stores[1].head(handle)).toMatchObject({
        revision: 1 + 2 * rounds,
        nodeCount: 1 + 2 * rounds,
        leaf: nodes.at(-1)?.id,
      });
    }),
  );

  test(
    "a turn without nodes that waited leaves the leaf where it is",
    fixture(async ({ stores: [one, two], held: { handle, fence } }) => {
      for (let round = 0; round < rounds; round += 1) {
        const id = `n${round}`;
        await Promise.all([
          one.commit(handle, { turn: id, fence, nodes: [said("x", { id })] }),
          two.commit(handle, { turn: `c${round}`, fence, config: { round } }),
        ]);
        expect(await one.head(handle)).toMatchObject({ leaf: id });
      }
    }),
  );

  test(
    "a fork beside the creation of its id is told that it exists, or is what creation finds",
    fixture(async ({ stores: [one, two], held: { handle } }) => {
      for (let round = 0; round < rounds; round += 1) {
        const id = `f${round}`;
        const [created, forked] = await Promise.allSettled([one.create(id), two.fork(handle, id)]);
        if (forked.status === "rejected")
          expect(forked.reason).toMatchObject({ code: "SESSION_EXISTS" });
        expect(created).toMatchObject({
          value: { existed: forked.status === "fulfilled" },
        });
      }
    }),
  );

  test(
    "two forks at once under one id are one",
    fixture(async ({ stores: [one, two], held: { handle } }) => {
      for (let round = 0; round < rounds; round += 1) {
        const id = `f${round}`;
        const both = await Promise.all([one.fork(handle, id), two.fork(handle, id)]);
        expect(both.filter(({ existed }) => existed)).toHaveLength(1);
      }
    }),
  );

  test(
    "a fork beside a commit begins at the leaf before it or after it",
    fixture(async ({ stores: [one, two], held: { handle, fence } }) => {
      let before = "root";
      for (let round = 0; round < rounds; round += 1) {
        const id = `n${round}`;
        await Promise.all([
          one.commit(handle, { turn: id, fence, nodes: [said("x", { id })] }),
          two.fork(handle, `f${round}`),
        ]);
        const { leaf } = await two.head(`f${round}`);
        expect([before, id]).toContain(leaf);
        before = id;
      }
    }),
  );
});
