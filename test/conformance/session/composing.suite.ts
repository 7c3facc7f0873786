import { describe, expect, test } from "vitest";
import { integer, row, run, sql } from "../../../src/kernel.ts";
import type { Isolation } from "../../../src/sql/isolation.ts";
import { attachments, queue, sessions } from "../../../src/sessions.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { addNote, createNoteTable, noteHalves } from "../notes.ts";
import { answered, inFixture, pathIds, said, spent } from "./fixture.ts";
import type { HeldSession, InFixture, SessionFixture } from "./fixture.ts";

/** A turn with something of everything, prepared, and beside it a note of the app's own. */
async function turnAndNote(
  { database }: SessionFixture,
  { handle, fence }: HeldSession,
  note: string,
): Promise<unknown> {
  const work = queue(database);
  await work.enqueue(handle, { items: [{ kind: "input", payload: "hi" }] });
  const claimed = await work.claimTurn(fence, { boundary: "idle" });
  const file = await attachments(database).put(handle, new Uint8Array([1]), {
    mediaType: "image/png",
  });
  const commit = sessions(database).commit.prepare(handle, {
    turn: "t1",
    fence,
    nodes: [said("hi", { id: "a" }), answered("there", { id: "b" })],
    components: { tools: { version: 1, value: new Map([["n", 2n]]) } },
    usage: [spent("chat", "m", 3)],
    claims: claimed === undefined ? [] : [claimed.ref],
    attachments: [file.id],
    config: { mode: "quick" },
    frames: [{ id: "f", reason: "root", state: { step: 1 } }],
    currentFrame: "f",
  });
  return database.write("mine", function* () {
    yield* addNote({ id: note });
    return yield* commit();
  });
}

export function sessionComposingSuite(backend: Backend): void {
  const fixture: InFixture = (body) => inFixture(backend, body);
  describe("a session read in a transaction of the app's own", () => {
    readTests(fixture);
  });
  describe("a session locked in a transaction of the app's own", () => {
    lockTests(fixture);
  });
  describe("a turn committed in a transaction of the app's own", () => {
    refusedTests(fixture);
    test(
      "becomes visible with what the app wrote beside it, and reads as any other",
      fixture(async (around) => {
        const { database, store } = around;
        await database.write("table", createNoteTable);
        const held = await around.held("s");
        expect(await turnAndNote(around, held, "n")).toEqual({
          kind: "committed",
          revision: 1,
          leaf: "b",
          nodes: ["a", "b"],
          changed: { tools: { version: 1, revision: 1 } },
        });
        expect(await noteHalves(database)).toBe("n1 n2");
        const { head, path, components } = await store.load("s");
        expect(head).toMatchObject({
          revision: 1,
          config: { mode: "quick" },
          frames: [{ id: "f", reason: "root", state: { step: 1 } }],
          currentFrame: "f",
        });
        expect(path.nodes.map(({ payload }) => payload)).toEqual([
          { text: "hi" },
          { text: "there" },
        ]);
        expect(components["tools"]?.value).toEqual(new Map([["n", 2n]]));
        expect(await store.usage("s")).toEqual([spent("chat", "m", 3)]);
        expect((await queue(database).list("s")).items).toEqual([]);
        expect((await store.list()).items).toMatchObject([{ firstUserMessage: "hi" }]);
        await database.close();
      }),
    );

    test(
      "is the same turn when the facade commits it again, under the same profile, limits and payload codec",
      fixture(async ({ database, held }) => {
        const upside = {
          name: "upside",
          hash: "sha256",
          encode: (text: string) => Array.from(text).toReversed().join(""),
          decode: (text: string) => Array.from(text).toReversed().join(""),
        } as const;
        const options = { payload: upside, profile: "compact" } as const;
        const { handle, fence } = await held("s");
        const turn = {
          turn: "t1",
          fence,
          nodes: [said("hi")],
          components: { c: { version: 1, value: "v" } },
        };
        const commit = sessions(database, options).commit.prepare(handle, turn);
        await database.write("mine", commit);
        expect(await sessions(database, options).commit(handle, turn)).toMatchObject({
          kind: "replayed",
          revision: 1,
        });
      }),
    );

    test(
      "can be forked in the same transaction",
      fixture(async (around) => {
        const { database, store } = around;
        const { handle, fence } = await around.held("s");
        const commit = store.commit.prepare(handle, {
          turn: "t1",
          fence,
          nodes: [said("hi", { id: "a" }), answered("there", { id: "b" })],
        });
        const fork = store.fork.prepare("s", "f", { node: "a" });
        await database.write(
          "mine",
          function* () {
            yield* commit();
            yield* fork();
          },
          { isolation: "readCommitted" },
        );
        expect(await pathIds(around, "f")).toBe("a");
        const { items: listed } = await store.list();
        expect(listed.map(({ firstUserMessage }) => firstUserMessage)).toEqual(["hi", "hi"]);
      }),
    );
  });
}

function readTests(fixture: InFixture): void {
  test(
    "appends each of 40 turns behind the leaf that the body has read",
    fixture(async ({ database, store, held }) => {
      const { handle, fence } = await held("s");
      const create = store.create.prepare("s");
      const path = store.path.prepare("s");
      const said40 = Array.from({ length: 40 }, (_, user) => `${user}`);
      await Promise.all(
        said40.map((user) =>
          database.write(
            `say ${user}`,
            function* () {
              yield* create();
              const { leaf } = yield* path();
              const node = said(user, { id: user, ...(leaf !== null && { parent: { id: leaf } }) });
              yield* store.commit.prepare(handle, { turn: user, fence, nodes: [node] })();
            },
            { isolation: "readCommitted" },
          ),
        ),
      );
      const { nodes } = await store.path("s");
      expect(nodes.map(({ id }) => id).toSorted()).toEqual(said40.toSorted());
    }),
  );
}

function lockTests(fixture: InFixture): void {
  test(
    "lets bodies that lock it read and write one after the other, and before or after a turn",
    fixture(async ({ database, store, held }) => {
      const { handle, fence } = await held("s");
      await database.write("table", function* () {
        yield* run(sql`CREATE TABLE app_count (n ${integer}, seen ${integer})`);
        yield* run(sql`INSERT INTO app_count (n, seen) VALUES (0, 0)`);
      });
      const lock = store.lock.prepare("s");
      const increment = (isolation: Isolation) =>
        database.write(
          "increment",
          function* () {
            const { revision } = yield* lock();
            const found = yield* row<{ readonly n: number }>(sql`SELECT n FROM app_count`);
            yield* run(sql`UPDATE app_count SET n = ${(found?.n ?? 0) + 1}, seen = ${revision}`);
          },
          { isolation },
        );
      const calls = Array.from({ length: 10 }, () => [
        increment("readCommitted"),
        increment("serializable"),
      ]);
      await Promise.all([
        ...calls.flat(),
        store.commit(handle, { turn: "t1", fence, nodes: [said("hi")] }),
      ]);
      await increment("readCommitted");
      expect(await database.read("counted", () => row(sql`SELECT * FROM app_count`))).toEqual({
        n: 21,
        seen: 1,
      });
      expect(await store.lock(handle)).toEqual({
        ...handle,
        revision: 1,
        agent: null,
        turns: 0,
        openTurn: null,
        isStopping: false,
      });
    }),
  );

  test(
    "is refused when there is none, or not of that generation",
    fixture(async ({ store }) => {
      expect(await rejection(store.lock("s"))).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
      const { id, generation } = await store.create("s");
      await store.delete("s");
      await store.create("s");
      expect(await rejection(store.lock({ id, generation }))).toMatchObject({
        code: "SESSION_DELETED",
      });
    }),
  );
}

function refusedTests(fixture: InFixture): void {
  test(
    "tells maintenance when it is durable, and records a lease that had run out",
    fixture(async ({ database, clock, held }) => {
      let told = 0;
      const store = sessions(database, {
        maintenance: { afterCommit: async () => void (told += 1) },
      });
      const { handle, fence } = await held("s");
      const commit = store.commit.prepare(handle, { turn: "t1", fence });
      await rejection(
        database.write("mine", function* () {
          yield* commit();
          throw new Error("Not now.");
        }),
      );
      expect(told).toBe(0);
      await database.write("mine", commit);
      await database.write("again", commit);
      expect(told).toBe(1);
      const late = store.commit.prepare(handle, { turn: "t2", fence });
      const lost = { code: "LEASE_LOST", details: { reason: "expired" } };
      clock.set(1_000 + 86_400_000);
      expect(await rejection(database.write("mine", late))).toMatchObject(lost);
      clock.set(1_000);
      expect(await rejection(database.write("mine", late))).toMatchObject(lost);
    }),
  );

  test(
    "leaves nothing of either when it is refused, or when the app's part is",
    fixture(async (around) => {
      const { database, clock, store, held, dump } = around;
      await database.write("table", createNoteTable);
      const session = await held("s");
      await database.write(addNote, { id: "taken" });
      const before = await dump();
      expect((await rejection(turnAndNote(around, session, "taken"))).message).toContain(
        "app_note",
      );
      const { nodes, turns, sessions: rows, usage, blobs } = await dump();
      expect({ nodes, turns, sessions: rows, usage, blobs }).toEqual({
        nodes: before["nodes"],
        turns: before["turns"],
        sessions: before["sessions"],
        usage: before["usage"],
        blobs: before["blobs"],
      });
      clock.advance(86_400_000);
      const { handle, fence } = session;
      const late = store.commit.prepare(handle, { turn: "t", fence });
      expect(
        await rejection(
          database.write("mine", function* () {
            yield* addNote({ id: "late" });
            yield* late();
          }),
        ),
      ).toMatchObject({ code: "LEASE_LOST" });
      expect(await noteHalves(database)).toBe("taken1 taken2");
      await database.close();
    }),
  );

  test(
    "is refused before the transaction when it makes no sense",
    fixture(async ({ store, held }) => {
      const { handle, fence } = await held("s");
      expect(() =>
        store.commit.prepare(handle, {
          turn: "t",
          fence,
          nodes: [said("x", { parent: { ordinal: 0 } })],
        }),
      ).toThrow(expect.objectContaining({ code: "TURN_INVALID" }));
      expect(() => store.commit.prepare(handle, { turn: "t", fence, config: () => 1 })).toThrow(
        expect.objectContaining({ code: "NOT_SERIALIZABLE" }),
      );
    }),
  );
}
