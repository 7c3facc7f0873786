import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { artifacts, blobs, maintenance } from "../../src/blobs.ts";
import { attachments, leases, queue, sessions } from "../../src/sessions.ts";
import { exportSession } from "../../src/sqlite.ts";
import { rejection } from "./backend.ts";
import type { Backend } from "./backend.ts";
import { dump as dumpBytes } from "./blob/owners.ts";
import { borderCalls, sessionName } from "./border-calls.ts";
import type { Call } from "./border-calls.ts";
import { bare, flawOf, secret, takesObject, wrong, wrongOption } from "./border-flaws.ts";
import { inFixture } from "./session/fixture.ts";
import type { HeldSession, SessionFixture } from "./session/fixture.ts";

export function borderSuite(backend: Backend): void {
  describe("at the border of sessions and what belongs to them", () => {
    test("every wrong argument is refused with a code, and changes nothing", async () => {
      const flaws = await atBorder(backend, async (refuses, calls) => {
        for (const call of calls)
          for (const [position, kind] of call.kinds.entries())
            for (const value of wrong[kind]) await refuses(call, position, value);
      });
      expect(flaws).toEqual([]);
    });

    test("every wrong option is refused with a code, and changes nothing", async () => {
      const flaws = await atBorder(backend, async (refuses, calls) => {
        for (const call of calls)
          for (const option of call.options ?? [])
            for (const value of wrongOption)
              if (value !== bare || !takesObject.includes(option))
                await refuses(call, call.args.length - 1, { [option]: value });
      });
      expect(flaws).toEqual([]);
    });

    test("every wrong part of what is given is refused with a code, and changes nothing", async () => {
      const flaws = await atBorder(backend, async (refuses, calls, { fence }) => {
        for (const [name, position, objects] of wrongParts(fence)) {
          const call = calls.find((each) => each.name === name);
          if (call === undefined) throw new Error(`No call ${name}.`);
          for (const object of objects) await refuses(call, position, object);
        }
      });
      expect(flaws).toEqual([]);
    });

    test("a turn names the part and the path of what is wrong in it", () =>
      inFixture(backend, async ({ held, dump }) => {
        const { commit } = await held(sessionName);
        const before = await dump();
        for (const [turn, part, path] of namedParts)
          expect(
            await commit({ turn: "t", ...(turn as object) }).catch((error: unknown) => error),
          ).toMatchObject({ code: "TURN_INVALID", details: { part, path } });
        expect(await dump()).toEqual(before);
      })());

    test("an export below a file is refused with a code, and leaves nothing", () =>
      inFixture(backend, async ({ database, held }) => {
        const { handle } = await held(sessionName);
        const folder = mkdtempSync(join(tmpdir(), "holdfast-border-"));
        try {
          writeFileSync(join(folder, "file"), "");
          for (const to of ["file/", "file/s.db", "file/x/s.db"])
            expect(
              await rejection(exportSession(database, handle, join(folder, to))),
            ).toMatchObject({
              code: "DATABASE_NOT_WRITABLE",
            });
          expect(readdirSync(folder)).toEqual(["file"]);
        } finally {
          rmSync(folder, { recursive: true });
        }
      })());

    test("facades refuse surroundings that are none", () =>
      inFixture(backend, async ({ database }) => {
        const facades = [
          sessions,
          leases,
          queue,
          attachments,
          blobs,
          artifacts,
          maintenance,
        ] as readonly ((...given: unknown[]) => unknown)[];
        for (const facade of facades)
          for (const value of [null, 5, secret, []])
            expect(() => facade(database, value)).toThrow(
              expect.objectContaining({ code: "OPTION_INVALID" }),
            );
        for (const [facade, environment] of [
          [sessions, { profile: "x" }],
          [sessions, { profile: {} }],
          [blobs, { profile: 5 }],
          [blobs, { bytesMax: "1" }],
          [attachments, { bytes: 5 }],
          [attachments, { bytes: null }],
          [queue, { sourceKeyMemory: {} }],
          [maintenance, { collectEvery: -1 }],
          [maintenance, { grace: bare }],
          [maintenance, { onCollected: 5 }],
        ] as const)
          expect(() => (facade as (...given: unknown[]) => unknown)(database, environment)).toThrow(
            expect.objectContaining({ name: "HoldfastError" }),
          );
      })());
  });
}

type Refuses = (call: Call, position: number, value: unknown) => Promise<void>;

/** Looks at the whole database after each call would take long: it is enough to know after all of them. */
function atBorder(
  backend: Backend,
  body: (refuses: Refuses, calls: readonly Call[], held: HeldSession) => Promise<void>,
): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-border-"));
  const flaws: string[] = [];
  return inFixture(backend, async (fixture) => {
    const held = await fixture.held(sessionName);
    const before = await everything(fixture);
    const calls = borderCalls(fixture.database, held.fence, folder);
    const refuses: Refuses = async (...given) => {
      const flaw = await flawOf(...given);
      if (flaw !== undefined) flaws.push(flaw);
    };
    await body(refuses, calls, held);
    expect(await everything(fixture)).toEqual(before);
    expect(readdirSync(folder)).toEqual([]);
  })()
    .then(() => flaws)
    .finally(() => rmSync(folder, { recursive: true }));
}

async function everything({ dump, database }: SessionFixture): Promise<unknown> {
  return [await dump(), await dumpBytes(database)];
}

const root = { kind: "root" };

function metas(): readonly object[] {
  return [
    { name: 5 },
    { name: "" },
    { name: "n", model: 5 },
    { name: "n", cwd: {} },
    { name: "n", relation: null },
    { name: "n", relation: secret },
    { name: "n", relation: { kind: "sibling" } },
    { name: "n", relation: { kind: "child" } },
    { name: "n", relation: { kind: "child", of: 5 } },
    { name: "n", relation: { kind: "child", of: "s", causedBy: 5 } },
  ];
}

/** Calls by name, a position, and objects with one wrong part each. */
function wrongParts(fence: object): readonly (readonly [string, number, readonly object[]])[] {
  const item = { kind: "k", payload: 1 };
  return [
    ["create", 1, metas()],
    ["fork", 2, metas().map((meta) => ({ meta }))],
    ["saveMeta", 1, [{}, { ...root, name: "n" }, ...metas()]],
    ["commit", 1, wrongTurns.map((turn) => ({ turn: "t", fence, ...turn }))],
    [
      "acquire",
      1,
      [
        { incarnation: "1" },
        { owner: "b", incarnation: 5 },
        { owner: "b", incarnation: "1", process: 5 },
        { owner: "b", incarnation: "1", process: "b" },
      ],
    ],
    ["reclaim lease", 2, [{}, { fence: secret, process: null }, { fence: 1, process: 5 }]],
    [
      "enqueue",
      1,
      [
        {},
        { items: null },
        { items: secret },
        { items: [] },
        { items: [null] },
        { items: [secret] },
        { items: [{ kind: 5, payload: 1 }] },
        { items: [{ ...item, class: {} }] },
        { items: [item], source: null },
        { items: [item], source: 5 },
        { items: [item], source: { process: "p", sequence: secret } },
        { items: [item], mergeKey: 5 },
        { items: [item], delivery: {} },
        { items: [item], slot: null },
        { items: [item], availableAt: secret },
      ],
    ],
    [
      "abandon",
      1,
      [
        {},
        { claim: 5, batches: [] },
        { claim: "a\0", batches: ["b"] },
        { claim: "c", batches: null },
        { claim: "c", batches: [5] },
      ],
    ],
    [
      "put",
      2,
      [
        {},
        { mediaType: 5 },
        { mediaType: "t", width: secret },
        { mediaType: "t", height: null },
        { mediaType: "t", label: 5 },
      ],
    ],
    ["put blob", 1, [{ kind: {} }, { kind: { name: "k", isCompressible: 5 } }]],
  ];
}

const used = { source: "s", model: "m", inputTokens: 1, outputTokens: 1 };

const wrongTurns: readonly object[] = [
  { turn: 5 },
  { session: 5 },
  { session: "other" },
  { fence: secret },
  { release: "no" },
  { expectedRevision: secret },
  { nodes: [{ payload: 1 }] },
  { nodes: [{ kind: "k", payload: 1, id: 5 }] },
  { nodes: [{ kind: "k", payload: 1, role: {} }] },
  { nodes: [{ kind: "k", payload: 1, frame: 5 }] },
  { nodes: [{ kind: "k", payload: 1, causedBy: 5 }] },
  { nodes: [{ kind: "k", payload: 1, parent: { ordinal: 7 } }] },
  { components: { c: { version: secret, value: 1 } } },
  { components: { "": { version: 1, value: 1 } } },
  { usage: [{ ...used, source: 5 }] },
  { usage: [{ ...used, inputTokens: secret }] },
  { usage: [{ ...used, inputTokens: bare }] },
  { frames: [{ id: "f" }] },
  { frames: [{ id: 5, reason: "r" }] },
  { claims: [{ claim: 5, batches: [] }] },
  { claims: [{ claim: "c", batches: [5] }] },
  { attachments: [5] },
  { attachments: [null] },
];

/** A turn with one wrong part, and how the error names it. */
const namedParts: readonly (readonly [unknown, string, string])[] = [
  [{ nodes: null }, "nodes", "nodes"],
  [{ nodes: "abc" }, "nodes", "nodes"],
  [{ nodes: {} }, "nodes", "nodes"],
  [{ nodes: [null] }, "nodes", "nodes[0]"],
  [{ nodes: [{ parent: "n1" }] }, "nodes", "nodes[0].parent"],
  [{ nodes: [{ parent: {} }] }, "nodes", "nodes[0].parent"],
  [{ nodes: [{ parent: { id: 5 } }] }, "nodes", "nodes[0].parent.id"],
  [{ nodes: [{ parent: { id: "a\0" } }] }, "nodes", "nodes[0].parent.id"],
  [{ leaf: "n1" }, "leaf", "leaf"],
  [{ leaf: {} }, "leaf", "leaf"],
  [{ leaf: { id: "n", ordinal: 0 } }, "leaf", "leaf"],
  [{ leaf: { id: {} } }, "leaf", "leaf.id"],
  [{ leaf: { ordinal: "0" } }, "leaf", "leaf.ordinal"],
  [{ components: null }, "components", "components"],
  [{ components: [1] }, "components", "components"],
  [{ components: { a: undefined } }, "components", 'components["a"]'],
  [{ components: { a: 5 } }, "components", 'components["a"]'],
  [{ usage: "abc" }, "usage", "usage"],
  [{ usage: [null] }, "usage", "usage[0]"],
  [{ usage: [{ ...used, cacheReadTokens: -1 }] }, "usage", "usage[0].cacheReadTokens"],
  [{ frames: {} }, "frames", "frames"],
  [{ frames: [5] }, "frames", "frames[0]"],
  [{ claims: "x" }, "claims", "claims"],
  [{ claims: [null] }, "claims", "claims[0]"],
  [{ claims: [{ claim: "c", batches: 5 }] }, "claims", "claims[0].batches"],
  [{ attachments: "abc" }, "attachments", "attachments"],
  [{ currentFrame: 5 }, "head", "currentFrame"],
  [{ currentFrame: {} }, "head", "currentFrame"],
  [{ currentFrame: "a\0b" }, "head", "currentFrame"],
  [{ currentFrame: "no-such-frame" }, "head", "currentFrame"],
  [{ currentFrame: "f", frames: [{ id: "g", reason: "r" }] }, "head", "currentFrame"],
];
