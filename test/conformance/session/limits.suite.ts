import { describe, expect, test } from "vitest";
import type { TurnDraft } from "../../../src/stores/session/turn/draft.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { inFixture, said, spent } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

/** What a turn may hold: refused with the part that it may not, and complete with what was left out. */
export function sessionLimitsSuite(backend: Backend): void {
  const fixture: InFixture = (body) => inFixture(backend, body);
  describe("what a turn may hold", () => {
    partTests(fixture);
    sizeTests(fixture);
    defaultTests(fixture);
  });
}

const bad = { a: { run: () => 1 } };

function partTests(fixture: InFixture): void {
  const parts: Readonly<Record<string, readonly [object, object]>> = {
    "a node": [
      { nodes: [said("fine"), { kind: "note", payload: bad }] },
      { part: "nodes", ordinal: 1 },
    ],
    "a component": [
      { components: { tools: { version: 1, value: bad } } },
      { part: "components", name: "tools" },
    ],
    "the data of a frame": [
      { frames: [{ id: "f", reason: "root", data: bad }] },
      { part: "frames", id: "f", field: "data" },
    ],
    "the state of a frame": [
      { frames: [{ id: "f", reason: "root", state: bad }] },
      { part: "frames", id: "f", field: "state" },
    ],
    "the config": [{ config: bad }, { part: "config" }],
  };
  for (const [what, [content, where]] of Object.entries(parts))
    test(
      `a value that cannot be stored in ${what} is named with its part and its place there`,
      fixture(async ({ held, dump }) => {
        const { commit } = await held("s");
        const before = await dump();
        const turn: TurnDraft = { turn: "t1", ...content };
        expect(await rejection(commit(turn))).toMatchObject({
          code: "NOT_SERIALIZABLE",
          details: { ...where, path: "$.a.run", found: "a function" },
        });
        expect(await dump()).toEqual(before);
      }),
    );
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}

function sizeTests(fixture: InFixture): void {
  test(
    "a payload as deep as any value may be is committed and repeated, a deeper one is named",
    fixture(async ({ store, held }) => {
      const { handle, commit } = await held("s");
      const turn = {
        turn: "t1",
        nodes: [{ id: "n", kind: "note", payload: nested(200) }],
        components: { deep: { version: 1, value: nested(200) } },
        config: nested(200),
      };
      expect(await commit(turn)).toMatchObject({ kind: "committed" });
      expect(await commit(turn)).toMatchObject({ kind: "replayed" });
      expect((await store.node(handle, "n"))?.payload).toEqual(nested(200));
      expect(
        await rejection(commit({ turn: "t2", nodes: [{ kind: "n", payload: nested(201) }] })),
      ).toMatchObject({
        code: "VALUE_TOO_LARGE",
        details: { part: "nodes", ordinal: 0, limit: 200 },
      });
    }),
  );

  test(
    "a claim names at most as many batches as one takes",
    fixture(async ({ held }) => {
      const { commit } = await held("s");
      const batches = Array.from({ length: 257 }, (_, index) => `b${index}`);
      expect(
        await rejection(commit({ turn: "t1", claims: [{ claim: "c", batches }] })),
      ).toMatchObject({
        code: "TURN_INVALID",
        details: { part: "claims", claim: "c", count: 257, max: 256 },
      });
      expect(
        await rejection(
          commit({
            turn: "t1",
            claims: [{ claim: "c", batches: batches.slice(1) }],
          }),
        ),
      ).toMatchObject({ code: "CLAIM_LOST" });
    }),
  );
}

function defaultTests(fixture: InFixture): void {
  test(
    "counts of usage that are left out are 0, and a repetition may give them",
    fixture(async ({ store, held }) => {
      const { handle, commit } = await held("s");
      const usage = [
        { source: "chat", model: "m", inputTokens: 3, outputTokens: 4 },
        { source: "title", model: "m" },
      ];
      expect(await commit({ turn: "t1", usage })).toMatchObject({
        kind: "committed",
      });
      const whole = [{ ...spent("chat", "m", 3), outputTokens: 4 }, spent("title", "m", 0)];
      // The other entry has used nothing.
      expect(await store.usage(handle)).toEqual([{ ...spent("chat", "m", 3), outputTokens: 4 }]);
      expect(await commit({ turn: "t1", usage: whole })).toMatchObject({
        kind: "replayed",
      });
    }),
  );
}
