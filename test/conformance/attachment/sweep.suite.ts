import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { ManualClock } from "../../../src/model/time/clock.ts";
import { rows, run, sql, type Database } from "../../../src/kernel.ts";
import { attachments } from "../../../src/sessions.ts";
import type { Attachments, ByteStore } from "../../../src/sessions.ts";
import { forgetAttachments } from "../../../src/stores/attachment/attachment-row.ts";
import { seed, seededRandom } from "../../depth.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { bytesOf, createSession, dump, hashes, textOf } from "../blob/owners.ts";
import { byteStoreKinds } from "./byte-stores.ts";

const text = { mediaType: "text/plain" };
const s = { id: "s" };

interface Fixture {
  readonly database: Database;
  readonly clock: ManualClock;
  readonly session: number;
  readonly bytes: ByteStore;
  readonly store: Attachments;
  /** The same as another process sees it, where there can be one. */
  readonly elsewhere: () => Promise<Attachments>;
  /** Names of copies whose bytes are there, whatever the database says. */
  readonly copies: () => Promise<readonly string[]>;
}

type InFixture = (body: (fixture: Fixture) => Promise<void>) => () => Promise<void>;

export function attachmentSweepSuite(backend: Backend): void {
  for (const kind of byteStoreKinds) {
    const fixture: InFixture = (body) => () =>
      withPlace(backend, (place) =>
        kind.run(async (bytesOn, left) => {
          const clock = manualClock(1_000_000);
          const database = await place.open({ clock });
          const session = await createSession(database, "s");
          const bytes = bytesOn(database);
          const copies = async (): Promise<readonly string[]> => {
            const found = await database.read("copies", () =>
              rows<{ name: string }>(sql`
                SELECT name FROM holdfast_attachment_bytes ORDER BY name`),
            );
            return [...found.map(({ name }) => name), ...left()];
          };
          const store = attachments(database, { bytes });
          const elsewhere = async (): Promise<Attachments> => {
            if (!backend.survives) return store;
            const other = await place.open({ clock });
            return attachments(other, { bytes: bytesOn(other) });
          };
          await body({
            database,
            clock,
            session,
            bytes,
            store,
            elsewhere,
            copies,
          });
        }),
      );
    describe(`sweeping attachments in ${kind.name}`, () => {
      sweepTests(fixture);
    });
    describe(`a sweep against a put of equal bytes in ${kind.name}`, () => {
      raceTests(fixture);
    });
  }
}

/** A gate that calls wait at until it is opened. */
function gate(): {
  readonly reached: Promise<void>;
  readonly open: () => void;
  readonly pass: () => Promise<void>;
} {
  let reach = (): void => undefined;
  let open = (): void => undefined;
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const opened = new Promise<void>((resolve) => (open = resolve));
  return {
    reached,
    open,
    pass() {
      reach();
      return opened;
    },
  };
}

function sweepTests(fixture: InFixture): void {
  test(
    "takes what was put and never committed, and leaves the rest",
    fixture(async ({ clock, store, copies }) => {
      await store.put(s, bytesOf("one"), text);
      await store.put(s, bytesOf("two"), text);
      await store.commit(s, [hashes.one]);
      clock.advance(999);
      await store.put(s, bytesOf("three"), text);
      clock.advance(1);
      expect(await store.sweep({ olderThan: "1s" })).toEqual({
        forgotten: 1,
        removed: 1,
        failed: [],
      });
      expect((await store.list(s)).items.map(({ id }) => id)).toEqual([hashes.one, hashes.three]);
      expect(await copies()).toHaveLength(2);
      expect((await rejection(store.get(s, hashes.two))).code).toBe("ATTACHMENT_NOT_FOUND");
      expect(await store.sweep({ olderThan: "1s" })).toEqual({
        forgotten: 0,
        removed: 0,
        failed: [],
      });
    }),
  );

  test(
    "has a day of grace unless told, which another put begins anew",
    fixture(async ({ clock, store }) => {
      await store.put(s, bytesOf("abc"), text);
      clock.advance(86_399_999);
      expect(await store.sweep()).toMatchObject({ forgotten: 0 });
      await store.put(s, bytesOf("abc"), text);
      clock.advance(86_399_999);
      expect(await store.sweep()).toMatchObject({ forgotten: 0 });
      clock.advance(1);
      expect(await store.sweep()).toMatchObject({ forgotten: 1, removed: 1 });
    }),
  );

  test(
    "goes in slices, tells after each, and can be given up",
    fixture(async ({ store, copies }) => {
      for (const name of ["one", "two", "three"]) await store.put(s, bytesOf(name), text);
      const giveUp = new AbortController();
      const error = await rejection(
        store.sweep({
          olderThan: 0,
          rowsPerSlice: 2,
          signal: giveUp.signal,
          onProgress: () => giveUp.abort(),
        }),
      );
      expect(error.code).toBe("ABORTED");
      expect((await store.list(s)).items).toHaveLength(1);
      expect(await copies()).toHaveLength(3);
      const told: number[] = [];
      expect(
        await store.sweep({
          olderThan: 0,
          rowsPerSlice: 2,
          onProgress: ({ forgotten, removed }) => told.push(forgotten, removed),
        }),
      ).toEqual({ forgotten: 1, removed: 3, failed: [] });
      expect(told).toEqual([1, 0, 1, 0, 1, 2, 1, 3]);
      expect(await copies()).toEqual([]);
    }),
  );

  test(
    "reports bytes that cannot be removed, and tries again the next time",
    fixture(async ({ database, bytes, store, copies }) => {
      await store.put(s, bytesOf("abc"), text);
      const stubborn: ByteStore = {
        ...bytes,
        remove: () => Promise.reject(Object.assign(new Error("/raw"), { code: "EACCES" })),
      };
      const failing = attachments(database, { bytes: stubborn });
      expect(await failing.sweep({ olderThan: 0 })).toMatchObject({
        forgotten: 1,
        removed: 0,
        failed: [{ reason: "EACCES" }],
      });
      expect(await store.sweep({ olderThan: 0 })).toEqual({
        forgotten: 0,
        removed: 1,
        failed: [],
      });
      expect(await copies()).toEqual([]);
      expect(await dump(database)).toMatchObject({ copies: [], bytes: [] });
    }),
  );

  test(
    "finds what a deleted session had, which is forgotten in slices, and leaves what others have too",
    fixture(async ({ database, session, store, copies }) => {
      await createSession(database, "other");
      for (const name of ["one", "two", "three"]) await store.put(s, bytesOf(name), text);
      await store.put({ id: "other" }, bytesOf("two"), text);
      await store.commit(s, [hashes.one, hashes.two]);
      const forget = (): Promise<number> =>
        database.write("forget", () => forgetAttachments(session, 2));
      expect([await forget(), await forget(), await forget()]).toEqual([2, 1, 0]);
      expect(await store.removeForgotten()).toMatchObject({ removed: 2 });
      expect(await copies()).toHaveLength(1);
      const kept = await store.get({ id: "other" }, hashes.two);
      expect(textOf(kept.content)).toBe("two");
    }),
  );

  test(
    "takes a put that never ended too, also beside one that did",
    fixture(async ({ database, clock, bytes, store, copies }) => {
      const dying: ByteStore = {
        ...bytes,
        // As a process does that dies right after its bytes were written.
        put: async (name, content) => {
          await bytes.put(name, content);
          throw new Error("killed");
        },
      };
      const dead = attachments(database, { bytes: dying });
      await rejection(dead.put(s, bytesOf("abc"), text));
      await store.put(s, bytesOf("abc"), text);
      await store.commit(s, [hashes.abc]);
      expect(await copies()).toHaveLength(2);
      clock.advance(1_000);
      expect(await store.sweep({ olderThan: "1s" })).toEqual({
        forgotten: 0,
        removed: 1,
        failed: [],
      });
      expect(await copies()).toHaveLength(1);
      expect(textOf((await store.get(s, hashes.abc)).content)).toBe("abc");
    }),
  );
}

function raceTests(fixture: InFixture): void {
  /** A store whose removals wait at a gate, as those of a sweeper that stalls. */
  const stalling = (
    database: Database,
    bytes: ByteStore,
    at: ReturnType<typeof gate>,
  ): Attachments =>
    attachments(database, {
      bytes: {
        ...bytes,
        remove: async (name) => {
          await at.pass();
          await bytes.remove(name);
        },
      },
    });

  test(
    "[AX12] a sweeper that stalls and goes on late does not hit bytes put since",
    fixture(async ({ database, bytes, store, copies }) => {
      await store.put(s, bytesOf("abc"), text);
      const late = gate();
      const sweeping = stalling(database, bytes, late).sweep({ olderThan: 0 });
      await late.reached;
      await store.put(s, bytesOf("abc"), text);
      await store.commit(s, [hashes.abc]);
      expect(await copies()).toHaveLength(2);
      late.open();
      expect(await sweeping).toMatchObject({ removed: 1 });
      expect(textOf((await store.get(s, hashes.abc)).content)).toBe("abc");
      expect(await copies()).toHaveLength(1);
    }),
  );

  test(
    "[AX12] nor do two that stall, one after bytes were put, swept and put again",
    fixture(async ({ database, bytes, store, copies }) => {
      await store.put(s, bytesOf("abc"), text);
      const gates = [gate(), gate()] as const;
      const first = stalling(database, bytes, gates[0]).sweep({ olderThan: 0 });
      await gates[0].reached;
      const second = stalling(database, bytes, gates[1]).sweep({
        olderThan: 0,
      });
      await gates[1].reached;
      await store.put(s, bytesOf("abc"), text);
      gates[1].open();
      expect(await second).toMatchObject({ removed: 1 });
      await store.sweep({ olderThan: 0 });
      await store.put(s, bytesOf("abc"), text);
      await store.commit(s, [hashes.abc]);
      gates[0].open();
      expect(await first).toEqual({ forgotten: 1, removed: 0, failed: [] });
      expect(textOf((await store.get(s, hashes.abc)).content)).toBe("abc");
      expect(await copies()).toHaveLength(1);
    }),
  );

  test(
    "[AX12] a put that stalls until a sweep has given it up says so, leaves nothing, and may be repeated",
    fixture(async ({ database, bytes, store, copies }) => {
      const late = gate();
      const slow = attachments(database, {
        bytes: {
          ...bytes,
          put: async (name, content) => {
            await late.pass();
            return bytes.put(name, content);
          },
        },
      });
      const putting = rejection(slow.put(s, bytesOf("abc"), text));
      await late.reached;
      await store.sweep({ olderThan: 0 });
      late.open();
      expect(await putting).toMatchObject({
        code: "ATTACHMENT_FAILED",
        retryable: true,
      });
      expect(await copies()).toEqual([]);
      await slow.put(s, bytesOf("abc"), text);
      expect(textOf((await store.get(s, hashes.abc)).content)).toBe("abc");
    }),
  );

  test(
    "[AX12] sweeps and puts of the same few contents at once: what was committed is there, and nothing else stays",
    fixture(async ({ database, store, elsewhere, copies }) => {
      const other = await elsewhere();
      const random = seededRandom(seed);
      const names = ["one", "two", "three"] as const;
      const committed = new Set<string>();
      const worker = async (mine: Attachments): Promise<void> => {
        for (let step = 0; step < 12; step += 1) {
          const name = names[Math.floor(random() * 3)] ?? "one";
          if (random() < 0.4) {
            await mine.sweep({ olderThan: 0 });
            continue;
          }
          const put = await mine.put(s, bytesOf(name), text).catch((error: unknown) => {
            expect(error).toMatchObject({ code: "ATTACHMENT_FAILED" });
          });
          if (put === undefined || random() < 0.5) continue;
          // One of them is only ever forgotten; the others are there once committed.
          if (name === "three") {
            await mine.forget(s, put.id);
            continue;
          }
          const unknown = await mine.commit(s, [put.id]);
          if (unknown.length === 0) committed.add(name);
        }
      };
      await Promise.all([store, other, store, other].map(worker));
      await store.sweep({ olderThan: 0 });
      const { items: listed } = await store.list(s);
      for (const { id } of listed) await store.get(s, id);
      expect(await copies()).toHaveLength(listed.length);
      for (const name of committed)
        expect(listed.map(({ id }) => id)).toContain(hashes[name as "one"]);
      expect(await dump(database)).toMatchObject({
        copies: listed.map(() => ({ state: "stored" })),
      });
    }),
  );

  test(
    "a slice forgets no more than its rows, however many sessions intend the same bytes",
    fixture(async ({ database, store }) => {
      for (const id of ["a", "b", "c", "d", "e"]) {
        await createSession(database, id);
        await store.put(id, bytesOf("abc"), text);
      }
      const told: number[] = [];
      const report = await store.sweep({
        olderThan: 0,
        rowsPerSlice: 2,
        onProgress: ({ forgotten }) => void told.push(forgotten),
      });
      expect(told.slice(0, 3)).toEqual([2, 4, 5]);
      expect(report).toMatchObject({ forgotten: 5, removed: 1 });
    }),
  );

  test(
    "[AX12] a commit that comes after the sweep is told which of its attachments are gone",
    fixture(async ({ database, store }) => {
      await store.put(s, bytesOf("abc"), text);
      await store.sweep({ olderThan: 0 });
      expect(await store.commit(s, [hashes.abc])).toEqual([hashes.abc]);
      await database.write("still works", () => run(sql`DELETE FROM holdfast_attachment`));
    }),
  );
}
