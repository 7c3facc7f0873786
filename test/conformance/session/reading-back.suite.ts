import { describe, expect, test } from "vitest";
import { rejection, type Backend } from "../backend.ts";
import { inFixture, said, type SessionFixture } from "./fixture.ts";

/** A session with `count` messages and a note after each second one. */
async function conversation({ held }: SessionFixture, count: number): Promise<void> {
  const { commit } = await held("s");
  for (let index = 0; index < count; index += 1)
    await commit({
      turn: `t${index}`,
      nodes: [
        { ...said(`m${index}`), id: `m${index}` },
        ...(index % 2 === 1 ? [{ kind: "note", payload: index, id: `n${index}` }] : []),
      ],
    });
}

async function listed(
  { store }: SessionFixture,
  session: string,
  options: Parameters<SessionFixture["store"]["graph"]>[1],
): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let after: string | undefined; ;) {
    const page = await store.graph(session, { ...options, ...(after !== undefined && { after }) });
    ids.push(...page.items.map(({ id }) => id));
    if (page.next === undefined) return ids;
    after = page.next;
  }
}

export function readingBackSuite(backend: Backend): void {
  describe("reading a session back", () => {
    test(
      "[RN17] lists nodes newest first, by kind and without payloads, in pages",
      inFixture(backend, async (fixture) => {
        await conversation(fixture, 6);
        const all = ["m0", "m1", "n1", "m2", "m3", "n3", "m4", "m5", "n5"];
        for (const limit of [1, 2, 100]) {
          expect(await listed(fixture, "s", { limit })).toEqual(all);
          expect(await listed(fixture, "s", { limit, order: "newest" })).toEqual(all.toReversed());
          expect(await listed(fixture, "s", { limit, order: "newest", kind: "note" })).toEqual([
            "n5",
            "n3",
            "n1",
          ]);
          expect(await listed(fixture, "s", { limit, kind: "note" })).toEqual(["n1", "n3", "n5"]);
        }
        const { items } = await fixture.store.graph("s", { payloads: false, kind: "note" });
        expect(items[0]).toMatchObject({
          id: "n1",
          parent: "m1",
          kind: "note",
          payload: undefined,
        });
        const oldest = await fixture.store.graph("s", { limit: 1 });
        expect(
          await rejection(fixture.store.graph("s", { order: "newest", after: oldest.next ?? "" })),
        ).toMatchObject({ code: "CURSOR_INVALID" });
        for (const options of [{ order: "up" }, { kind: "" }, { payloads: 1 }, { kind: "a\0" }])
          expect(await rejection(fixture.store.graph("s", options as never))).toMatchObject({
            name: "HoldfastError",
          });
      }),
    );

    test(
      "[RN17] lists a fork's shared nodes behind its own, and none that are hidden or left out",
      inFixture(backend, async (fixture) => {
        const { store, held } = fixture;
        await conversation(fixture, 4);
        await store.fork("s", "f", { node: "m2" });
        const { commit, fence, handle } = await held("f");
        await commit({
          turn: "own",
          nodes: [
            { ...said("own"), id: "own" },
            { kind: "note", payload: 1, id: "noted" },
          ],
        });
        await store.tombstone(handle, ["m1"], { fence });
        const shown = await listed(fixture, "f", {});
        expect(shown).not.toContain("m3");
        expect(shown).toContain("own");
        for (const limit of [1, 2, 3, 100]) {
          expect(await listed(fixture, "f", { limit, order: "newest" })).toEqual(
            shown.toReversed(),
          );
          expect(await listed(fixture, "f", { limit, order: "newest", kind: "note" })).toEqual(
            (await listed(fixture, "f", { limit, kind: "note" })).toReversed(),
          );
        }
        const second = await store.fork("f", "g");
        expect(await listed(fixture, second.id, { order: "newest", limit: 2 })).toEqual(
          (await listed(fixture, second.id, {})).toReversed(),
        );
      }),
    );

    test(
      "[RN17] reads several nodes by their ids, in that order and once each",
      inFixture(backend, async (fixture) => {
        const { store } = fixture;
        await conversation(fixture, 4);
        await store.fork("s", "f", { node: "m2" });
        const nodes = await store.nodes("s", ["n3", "unknown", "m0", "n3"]);
        expect(nodes).toEqual([await store.node("s", "n3"), await store.node("s", "m0")]);
        expect((await store.nodes("f", ["m3", "m1"])).map(({ id }) => id)).toEqual(["m1"]);
        expect(await store.nodes("s", [])).toEqual([]);
        for (const ids of [null, "m0", [""], [7], Array.from({ length: 101 }, (_, i) => `m${i}`)])
          expect(await rejection(store.nodes("s", ids as never))).toMatchObject({
            name: "HoldfastError",
          });
        expect(await rejection(store.nodes("nobody", ["a"]))).toMatchObject({
          code: "SESSION_NOT_FOUND",
        });
      }),
    );
  });
}
