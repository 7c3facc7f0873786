import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  componentHashesOf,
  derivedNodeIds,
  firstDifference,
  nodePlaces,
  turnIdentity,
} from "./turn.ts";
import type { HashValue, TurnContent } from "./turn.ts";
import { valueCodec } from "../values/value-codec.ts";

const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex");
const codec = valueCodec({ sha256Hex });
const hash: HashValue = (domain, version, value) => codec.hash(domain, version, value);
const owner = { session: "s", generation: 1, turn: "t" };
const node = { kind: "message", role: "user", payload: { text: "hi" } };

function identity(content: TurnContent, of = owner): ReturnType<typeof turnIdentity> {
  return turnIdentity(
    hash,
    of,
    content,
    nodePlaces("s", content.nodes ?? []),
    componentHashesOf(hash, content.components),
  );
}

describe("where nodes go", () => {
  test("the first follows the leaf and the others each other, unless told", () => {
    expect(
      nodePlaces("s", [
        node,
        node,
        { ...node, parent: null },
        { ...node, parent: { ordinal: 0 } },
        { ...node, id: "x", parent: { id: "elsewhere" } },
        { ...node, parent: { id: "x" } },
      ]),
    ).toEqual([
      { kind: "leaf" },
      { kind: "ordinal", ordinal: 0 },
      { kind: "root" },
      { kind: "ordinal", ordinal: 0 },
      { kind: "id", id: "elsewhere" },
      { kind: "ordinal", ordinal: 4 },
    ]);
  });

  test("an id given twice and a parent that comes later are refused", () => {
    expect(() =>
      nodePlaces("s", [
        { ...node, id: "x" },
        { ...node, id: "x" },
      ]),
    ).toThrow(expect.objectContaining({ code: "NODE_EXISTS" }));
    for (const parent of [{ ordinal: 0 }, { ordinal: 1 }, { id: "x" }])
      expect(() =>
        nodePlaces("s", [
          { ...node, parent },
          { ...node, id: "x" },
        ]),
      ).toThrow(expect.objectContaining({ code: "TURN_INVALID" }));
    for (const ordinal of [-1, 0.5, 9, Number.NaN])
      expect(() => nodePlaces("s", [node, { ...node, parent: { ordinal } }])).toThrow(
        expect.objectContaining({ code: "TURN_INVALID" }),
      );
  });
});

describe("what makes a turn the same turn", () => {
  // Receipts hold these for good: a change of their making takes the next version.
  test("its hash is the same in every release", () => {
    expect(identity({ nodes: [node] })).toEqual({
      hash: "b4afa536c950d67fdc77a438f843520564a326f2c07be846ce73e7cbd3c9eae3",
      parts: {
        nodes: "94d594de40ddba5cadadbf56fe124e945a5de6adf0cbd289fd8c8db0543a2631",
      },
    });
    expect(identity({}).parts).toEqual({});
  });

  test("depends on session, generation and turn", () => {
    const hashes = [
      owner,
      { ...owner, session: "other" },
      { ...owner, generation: 2 },
      { ...owner, turn: "other" },
    ].map((of) => identity({ nodes: [node] }, of).hash);
    expect(new Set(hashes).size).toBe(4);
  });

  test("does not depend on ids of nodes, order of components or repeated attachments", () => {
    const content = {
      nodes: [node, node],
      components: {
        a: { version: 1, value: 1 },
        b: { version: 1, value: { x: 1, y: 2 } },
      },
      attachments: ["2", "1"],
    };
    expect(
      identity({
        nodes: [
          { ...node, id: "n0" },
          { ...node, id: "n1", parent: { id: "n0" } },
        ],
        components: {
          b: { version: 1, value: { y: 2, x: 1 } },
          a: { version: 1, value: 1 },
        },
        attachments: ["1", "2", "2"],
      }),
    ).toEqual(identity(content));
  });

  test("does not depend on whether a count of 0 is given", () => {
    const short = { source: "chat", model: "m", inputTokens: 3 };
    const whole = {
      ...short,
      outputTokens: 0,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
    };
    expect(identity({ usage: [short] })).toEqual(identity({ usage: [whole] }));
  });

  test("the first part that differs is named, in a fixed order", () => {
    const { parts } = identity({ nodes: [node], config: 1, usage: [] });
    expect(firstDifference(parts, parts)).toBeUndefined();
    expect(firstDifference(parts, identity({ nodes: [node], config: 2 }).parts)).toBe("head");
    expect(firstDifference(parts, identity({ config: 2 }).parts)).toBe("nodes");
    expect(firstDifference(parts, identity({ nodes: [node], attachments: ["x"] }).parts)).toBe(
      "attachments",
    );
  });
});

test("ids of nodes that were given none are the same in every release", () => {
  const idOf = derivedNodeIds(sha256Hex, owner);
  expect([idOf(0), idOf(12)]).toEqual([
    "n_4fd21cf66c0759f3e4f5d1f98af53378_0",
    "n_4fd21cf66c0759f3e4f5d1f98af53378_12",
  ]);
});
