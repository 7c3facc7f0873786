import { describe, expect, test } from "vitest";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { attachments } from "../../../src/stores/attachment/attachments.ts";
import { sessions } from "../../../src/stores/session/sessions.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { inFixture, said, spent } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

export function sessionContentSuite(backend: Backend): void {
  const fixture: InFixture = (body) => inFixture(backend, body);
  describe("what a turn commits", () => {
    resultTests(fixture);
    checkpointTests(fixture);
    usageTests(fixture);
    encryptionTests(fixture);
  });
}

function resultTests(fixture: InFixture): void {
  test(
    "[A6] the first commit is revision 1, and frames come back with their reason and the bytes of their state",
    fixture(async ({ store, held }) => {
      const { handle, commit } = await held("s");
      const state = Uint8Array.from([0, 1, 254, 255]);
      const result = await commit({
        turn: "t1",
        nodes: [said("hi", { frame: "f1" })],
        config: { provider: "p", model: "m" },
        frames: [
          { id: "f1", reason: "handoff.custom", data: { depth: 1 }, state },
          { id: "f2", reason: "root", state: null },
        ],
        currentFrame: "f1",
        components: { execution: { version: 1, value: state } },
      });
      expect(result).toMatchObject({ kind: "committed", revision: 1 });
      expect(result.nodes).toHaveLength(1);
      const head = await store.head(handle);
      expect(head).toEqual({
        agent: null,
        turns: 0,
        openTurn: null,
        isStopping: false,
        id: "s",
        generation: 1,
        revision: 1,
        config: { provider: "p", model: "m" },
        frames: [
          { id: "f1", reason: "handoff.custom", data: { depth: 1 }, state },
          { id: "f2", reason: "root", data: undefined, state: null },
        ],
        currentFrame: "f1",
        leaf: result.leaf,
        nodeCount: 1,
      });
      expect(await store.components(handle)).toEqual({
        execution: { version: 1, revision: 1, value: state },
      });
    }),
  );

  test(
    "[A6] frames that are left out go, and a state that is not given is kept",
    fixture(async ({ store, held }) => {
      const { handle, commit } = await held("s");
      await commit({
        turn: "t1",
        frames: [
          { id: "f1", reason: "root", state: { step: 1 } },
          { id: "f2", reason: "sub", state: { step: 2 } },
        ],
      });
      await commit({
        turn: "t2",
        frames: [
          { id: "f3", reason: "new" },
          { id: "f1", reason: "root" },
        ],
      });
      expect((await store.head(handle)).frames).toEqual([
        { id: "f3", reason: "new", data: undefined, state: null },
        { id: "f1", reason: "root", data: undefined, state: { step: 1 } },
      ]);
    }),
  );

  test(
    "ids of nodes derive from session, generation, turn and place",
    fixture(async ({ held }) => {
      const { commit } = await held("s");
      expect(await commit({ turn: "t1", nodes: [said("hi")] })).toEqual({
        kind: "committed",
        revision: 1,
        leaf: "n_4f293fcdb1aca733d9adc6f87623b992_0",
        nodes: ["n_4f293fcdb1aca733d9adc6f87623b992_0"],
        changed: {},
      });
    }),
  );

  test(
    "attachments that the turn names are stamped; with one that is gone it is refused, and changes nothing",
    fixture(async ({ database, clock, held, dump }) => {
      const { handle, commit } = await held("s");
      const files = attachments(database);
      const { id } = await files.put(handle, Uint8Array.from([1, 2]), {
        mediaType: "image/png",
      });
      const other = await files.put(handle, Uint8Array.from([3]), {
        mediaType: "image/png",
      });
      clock.advance(10);
      const before = await dump();
      const unknown = "f".repeat(64);
      const turn = { turn: "t1", nodes: [said("see")] };
      expect(await rejection(commit({ ...turn, attachments: [id, unknown] }))).toMatchObject({
        code: "ATTACHMENT_NOT_FOUND",
        details: { part: "attachments", session: "s", ids: [unknown] },
      });
      await database.write("lose the bytes", function* () {
        yield* run(
          sql`UPDATE holdfast_attachment_copy SET state = 'condemned' WHERE id = ${other.id}`,
        );
      });
      expect(await rejection(commit({ ...turn, attachments: [id, other.id] }))).toMatchObject({
        code: "ATTACHMENT_NOT_FOUND",
        details: { ids: [other.id] },
      });
      expect(await dump()).toEqual(before);
      await commit({ ...turn, attachments: [id, id] });
      const { items: open } = await files.listUncommitted(handle, 5_000);
      expect(open.map((attachment) => attachment.id)).toEqual([other.id]);
      expect((await files.get(handle, id)).attachment).toMatchObject({
        committedAt: 1_010,
      });
      await database.write("lose the attachment", function* () {
        yield* run(sql`DELETE FROM holdfast_attachment WHERE id = ${id}`);
      });
      expect(await commit({ ...turn, attachments: [id, id] })).toMatchObject({
        kind: "replayed",
      });
    }),
  );
}

function encryptionTests(fixture: InFixture): void {
  test(
    "with a codec that never writes the same twice nothing is readable, and a turn can still be repeated",
    fixture(async ({ database, held, dump }) => {
      const { handle, fence } = await held("s");
      let salt = 0;
      const store = sessions(database, {
        payload: {
          name: "reversed",
          encode: (text) => `${(salt += 1)}:${text.split("").toReversed().join("")}`,
          decode: (stored) =>
            stored
              .slice(stored.indexOf(":") + 1)
              .split("")
              .toReversed()
              .join(""),
          hash: (text) => `keyed-${text.length}`,
        },
      });
      const turn = {
        turn: "t1",
        fence,
        nodes: [said("secret")],
        components: { tools: { version: 1, value: "secret" } },
        frames: [{ id: "f", reason: "root", state: "secret" }],
        config: "secret",
      };
      const first = await store.commit(handle, turn);
      const stored = JSON.stringify(await dump());
      expect(stored).not.toContain("secret");
      expect(stored).toContain("terces");
      expect(await store.commit(handle, turn)).toEqual({
        ...first,
        kind: "replayed",
      });
      const again = await store.commit(handle, { ...turn, turn: "t2" });
      expect(again.changed).toEqual({});
      expect(await store.load(handle)).toMatchObject({
        head: { config: "secret", frames: [{ state: "secret" }] },
        path: { nodes: [{ payload: { text: "secret" } }, {}] },
        components: { tools: { value: "secret" } },
      });
      expect((await store.list()).items).toMatchObject([{ firstUserMessage: "secret" }]);
    }),
  );
}

function checkpointTests(fixture: InFixture): void {
  test(
    "[A8] parts of the checkpoint are read as they were last written, and the ledger shows the usage",
    fixture(async ({ store, held, dump }) => {
      const { handle, commit } = await held("s");
      await commit({
        turn: "t1",
        components: {
          tools: { version: 4, value: { generation: 7 } },
          plugins: { version: 1, value: ["a", "b"] },
          mine: { version: 1, value: new Map([["k", 1n]]) },
        },
        usage: [spent("chat", "m", 3)],
      });
      expect((await dump())["blobs"]).toHaveLength(3);
      const second = await commit({
        turn: "t2",
        components: {
          tools: { version: 4, value: { generation: 8 } },
          plugins: { version: 1, value: ["a", "b"] },
          mine: null,
        },
      });
      expect(second.changed).toEqual({ tools: { version: 4, revision: 2 } });
      const [, receipt] = (await dump())["turns"] as { result: string }[];
      expect(receipt?.result).toBe(
        '{"revision":2,"leaf":null,"nodes":[],"changed":{"tools":{"version":4,"revision":2}}}',
      );
      expect(await store.components(handle)).toEqual({
        plugins: { version: 1, revision: 1, value: ["a", "b"] },
        tools: { version: 4, revision: 2, value: { generation: 8 } },
      });
      expect((await dump())["blobs"]).toHaveLength(2);
      await commit({ turn: "t3", nodes: [said("hi")] });
      expect(await store.components(handle)).toMatchObject({
        tools: { revision: 2 },
      });
      expect(await store.usage(handle)).toEqual([spent("chat", "m", 3)]);
      // Another format of the same value is another part.
      const fourth = await commit({
        turn: "t4",
        components: { plugins: { version: 2, value: ["a", "b"] } },
      });
      expect(fourth.changed).toEqual({ plugins: { version: 2, revision: 4 } });
      expect(await store.components(handle)).toMatchObject({
        plugins: { version: 2, revision: 4, value: ["a", "b"] },
      });
      expect((await dump())["blobs"]).toHaveLength(2);
    }),
  );
}

function usageTests(fixture: InFixture): void {
  test(
    "usage is summed per source and model in the order of first use",
    fixture(async ({ store, held }) => {
      const { handle, commit } = await held("s");
      await commit({
        turn: "t1",
        usage: [spent("title", "small", 1), spent("chat", "large", 2)],
      });
      await commit({
        turn: "t2",
        usage: [spent("chat", "large", 40), spent("chat", "small", 5)],
      });
      expect(await store.usage(handle)).toEqual([
        spent("title", "small", 1),
        spent("chat", "large", 42),
        spent("chat", "small", 5),
      ]);
    }),
  );

  test(
    "usage is summed over any number of entries, of this session alone, and of those there were at first",
    fixture(async ({ database, store, held }) => {
      const { handle, commit } = await held("s");
      const other = await held("other");
      await other.commit({ turn: "t1", usage: [spent("chat", "m", 7)] });
      for (let turn = 0; turn < 9; turn += 1)
        await commit({
          turn: `t${turn}`,
          usage: Array.from({ length: 250 }, (_, index) =>
            spent(index === 249 && turn === 8 ? "late" : "chat", "m", 2),
          ),
        });
      let pages = 0;
      const counting = new Proxy(database, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name);
          if (typeof value !== "function") return value;
          if (name !== "read") return value.bind(target) as unknown;
          return async (...all: unknown[]) => {
            pages += 1;
            // Between two pages somebody goes on.
            if (pages === 2) await commit({ turn: "on", usage: [spent("chat", "m", 1_000)] });
            return (value as (...rest: unknown[]) => unknown).apply(target, all);
          };
        },
      });
      expect(await sessions(counting).usage(handle)).toEqual([
        spent("chat", "m", 4_498),
        spent("late", "m", 2),
      ]);
      expect(pages).toBe(2);
      expect(await store.usage(handle)).toEqual([spent("chat", "m", 5_498), spent("late", "m", 2)]);
    }),
  );

  test(
    "[AX19] what was only read from a cache is kept",
    fixture(async ({ store, held }) => {
      const { handle, commit } = await held("s");
      const cached = { ...spent("chat", "m", 0), cacheReadTokens: 900 };
      await commit({ turn: "t1", usage: [cached] });
      expect(await store.usage(handle)).toEqual([cached]);
    }),
  );

  test(
    "entries whose counts are all zero are left out, and do not say which source came first",
    fixture(async ({ store, held }) => {
      const { handle, commit } = await held("s");
      const zero = (source: string) => ({ ...spent(source, "m", 0), outputTokens: 0 });
      const onlyRead = { ...zero("cache"), cacheReadTokens: 7 };
      await commit({ turn: "t1", nodes: [], usage: [zero("late"), zero("never"), onlyRead] });
      await commit({ turn: "t2", nodes: [], usage: [spent("chat", "m", 2), zero("chat")] });
      await commit({ turn: "t3", nodes: [], usage: [spent("late", "m", 1)] });
      expect(await store.usage(handle)).toEqual([
        onlyRead,
        spent("chat", "m", 2),
        spent("late", "m", 1),
      ]);
    }),
  );

  test(
    "a sum beyond 2^53 − 1 is an error that names it, the largest exact one is not",
    fixture(async ({ store, held }) => {
      const { handle, commit } = await held("s");
      const largest = Number.MAX_SAFE_INTEGER;
      await commit({
        turn: "t1",
        usage: [spent("chat", "m", largest - 1), spent("chat", "m", 1)],
      });
      expect(await store.usage(handle)).toEqual([spent("chat", "m", largest)]);
      await commit({
        turn: "t2",
        usage: Array.from({ length: 200 }, () => spent("chat", "m", largest)),
      });
      expect(await rejection(store.usage(handle))).toMatchObject({
        code: "USAGE_OVERFLOW",
        details: { source: "chat", model: "m", kind: "inputTokens" },
      });
    }),
  );
}
