import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { ManualClock } from "../../../src/model/time/clock.ts";
import { row, run, sql, type Database } from "../../../src/kernel.ts";
import {
  type Attachments,
  type ByteStore,
  type SessionId,
  attachmentsInDatabase,
} from "../../../src/sessions.ts";
import { attachments, leases, sessions } from "../../../src/sessions.ts";
import { shareAttachments } from "../../../src/stores/attachment/attachment-row.ts";
import { lockedSession } from "../../../src/stores/session-row.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { holding, said } from "../session/fixture.ts";
import { bytesOf, createSession, dump, hashes, textOf } from "../blob/owners.ts";

interface Fixture {
  readonly database: Database;
  readonly clock: ManualClock;
  readonly store: Attachments;
}

type InFixture = (body: (fixture: Fixture) => Promise<void>) => () => Promise<void>;

const text = { mediaType: "text/plain" };
const s = { id: "s" };

export function attachmentsSuite(backend: Backend): void {
  const fixture: InFixture = (body) => () =>
    withPlace(backend, async (place) => {
      const clock = manualClock(1_000);
      const database = await place.open({ clock });
      await createSession(database, "s");
      await body({ database, clock, store: attachments(database) });
    });

  describe("an attachment that cannot be put", () => {
    refusalTests(fixture);
  });
  describe("the manifest of attachments", () => {
    manifestTests(fixture);
  });
  describe("a session's attachments", () => {
    sessionTests(fixture);
  });
}

/** A byte store that does as the one in the database does, but for some parts. */
function storeWith(database: Database, parts: Partial<ByteStore>): ByteStore {
  return { ...attachmentsInDatabase(database), ...parts };
}

function refusalTests(fixture: InFixture): void {
  test(
    "[A45] because its byte store takes no names from intents: such a store is refused",
    fixture(async ({ database }) => {
      for (const part of ["put", "get", "remove", "kind", "isDurable"] as const)
        expect(() =>
          attachments(database, {
            bytes: storeWith(database, { [part]: undefined }),
          }),
        ).toThrow("A byte store needs kind, isDurable");
      const [bytes] = [{ put: () => "id", get: () => undefined }];
      expect(() => attachments(database, { bytes: bytes as never })).toThrow(
        "needs kind, isDurable, bytesMax",
      );
    }),
  );

  test(
    "[A46] because its byte store is not durable and the database is: such a store is refused",
    fixture(async ({ database }) => {
      const open = () =>
        attachments(database, { bytes: storeWith(database, { isDurable: false }) });
      if (database.durability === "memory") return expect(open().isDurable).toBe(false);
      expect(open).toThrow('The byte store "database" is not durable, but this database is');
      expect(open).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }) as Error);
    }),
  );

  test(
    "[A47] because its intent cannot be recorded: then no bytes are written",
    fixture(async ({ database }) => {
      let puts = 0;
      const bytes = storeWith(database, {
        put() {
          puts += 1;
          return Promise.resolve(hashes.abc);
        },
      });
      const store = attachments(database, { bytes });
      const before = await dump(database);
      const code = async (id: string, generation?: number): Promise<unknown> =>
        (await rejection(store.put({ id, generation }, bytesOf("abc"), text))).code;
      expect(await code("nobody")).toBe("SESSION_NOT_FOUND");
      expect(await code("s", 2)).toBe("SESSION_DELETED");
      expect(await code("")).toBe("ID_MALFORMED");
      await database.write("break", () =>
        run(sql`ALTER TABLE holdfast_attachment RENAME COLUMN label TO away`),
      );
      expect(await code("s")).toBe("STATEMENT_FAILED");
      await database.write("mend", () =>
        run(sql`ALTER TABLE holdfast_attachment RENAME COLUMN away TO label`),
      );
      expect(puts).toBe(0);
      expect(await dump(database)).toEqual(before);
      await database.close(); // It was altered: no other test may have it.
    }),
  );

  test(
    "[A47] because the byte store kept something else, or failed: it is not pending, and the intent is left for the sweep",
    fixture(async ({ database }) => {
      const wrong = storeWith(database, {
        put: () => Promise.resolve(hashes.one),
      });
      const broken = storeWith(database, {
        put: () => Promise.reject(new Error("no bucket")),
      });
      for (const bytes of [wrong, broken]) {
        const mine = attachments(database, { bytes }).ofSession(s);
        const error = await rejection(mine.put(bytesOf("abc"), text));
        expect(error).toMatchObject({
          code: "ATTACHMENT_FAILED",
          retryable: true,
          details: { id: hashes.abc },
        });
        expect(mine.pending).toEqual([]);
      }
      const store = attachments(database);
      expect((await store.listUncommitted(s, 1_000)).items).toMatchObject([{ id: hashes.abc }]);
      expect((await rejection(store.get(s, hashes.abc))).code).toBe("ATTACHMENT_NOT_FOUND");
      await store.put(s, bytesOf("abc"), text);
      expect(textOf((await store.get(s, hashes.abc)).content)).toBe("abc");
    }),
  );

  test(
    "because it is too large or badly described: nothing is recorded",
    fixture(async ({ database }) => {
      const bytes = attachmentsInDatabase(database, { bytesMax: 3 });
      const store = attachments(database, { bytes });
      const before = await dump(database);
      expect(await rejection(store.put(s, bytesOf("abcd"), text))).toMatchObject({
        code: "VALUE_TOO_LARGE",
        details: { size: 4, limit: 3 },
      });
      for (const [description, code] of [
        [{ mediaType: "" }, "NAME_INVALID"],
        [{ mediaType: "a\0" }, "NAME_INVALID"],
        [{ ...text, width: -1 }, "OPTION_INVALID"],
        [{ ...text, height: 2 ** 53 }, "OPTION_INVALID"],
        [{ ...text, label: "x".repeat(1_025) }, "NAME_INVALID"],
      ] as const)
        expect(await rejection(store.put(s, bytesOf("abc"), description))).toMatchObject({ code });
      expect(await dump(database)).toEqual(before);
    }),
  );

  test(
    "[AX20] because the time is beyond 2^53: refused, and nothing is recorded",
    fixture(async ({ database, store }) => {
      const before = await dump(database);
      for (const now of [2 ** 53, 2 ** 63]) {
        const clock = { ...manualClock(), now: () => now };
        const late = attachments(database, { clock });
        expect((await rejection(late.put(s, bytesOf("abc"), text))).code).toBe("PARAMETER_INVALID");
        expect((await rejection(store.listUncommitted(s, now))).code).toBe("OPTION_INVALID");
        expect((await rejection(store.sweep({ olderThan: now * 2 }))).code).toBe(
          "DURATION_INVALID",
        );
      }
      expect(await dump(database)).toEqual(before);
    }),
  );
}

function manifestTests(fixture: InFixture): void {
  test(
    "[A44] of three intents, one committed by itself and one by a turn's commit: the third is listed until it is forgotten",
    fixture(async ({ database, clock, store }) => {
      for (const name of ["one", "two", "three"]) {
        await store.put(s, bytesOf(name), text);
        clock.advance(10);
      }
      expect((await store.listUncommitted(s, 1_010)).items).toMatchObject([
        { id: hashes.one, intentAt: 1_000 },
        { id: hashes.two, intentAt: 1_010 },
      ]);
      expect(await store.commit(s, [hashes.one])).toEqual([]);
      const { commit } = await holding(sessions(database), leases(database), {
        id: "s" as SessionId,
        generation: 1,
      });
      const turn = { turn: "t1", nodes: [said("look")] };
      expect(
        await rejection(commit({ ...turn, attachments: [hashes.two, hashes.abc] })),
      ).toMatchObject({
        code: "ATTACHMENT_NOT_FOUND",
        details: { ids: [hashes.abc] },
      });
      expect((await store.listUncommitted(s, 9_000)).items).toHaveLength(2);
      clock.advance(10);
      await commit({ ...turn, attachments: [hashes.two] });
      expect((await store.get(s, hashes.two)).attachment).toMatchObject({
        committedAt: 1_040,
      });
      expect((await store.listUncommitted(s, 9_000)).items).toMatchObject([{ id: hashes.three }]);
      expect(await store.forget(s, hashes.three)).toBe(true);
      expect(await store.forget(s, hashes.three)).toBe(false);
      expect((await store.listUncommitted(s, 9_000)).items).toEqual([]);
    }),
  );

  test(
    "stamps nothing whose bytes never arrived, and says so",
    fixture(async ({ database, store }) => {
      const failing = attachments(database, {
        bytes: storeWith(database, {
          put: () => Promise.reject(new Error("no")),
        }),
      });
      await rejection(failing.put(s, bytesOf("abc"), text));
      await store.put(s, bytesOf("one"), text);
      expect(await store.commit(s, [hashes.abc, hashes.one])).toEqual([hashes.abc]);
      expect((await store.listUncommitted(s, 9_000)).items).toMatchObject([{ id: hashes.abc }]);
      expect((await rejection(store.get(s, hashes.abc))).code).toBe("ATTACHMENT_NOT_FOUND");
      await store.put(s, bytesOf("abc"), text);
      expect(await store.commit(s, [hashes.abc])).toEqual([]);
    }),
  );

  test(
    "never forgets what a commit refers to",
    fixture(async ({ database, store }) => {
      await store.put(s, bytesOf("abc"), text);
      await store.commit(s, [hashes.abc]);
      const before = await dump(database);
      expect(await rejection(store.forget(s, hashes.abc))).toMatchObject({
        code: "ATTACHMENT_COMMITTED",
        details: { id: hashes.abc },
      });
      expect(await dump(database)).toEqual(before);
      expect(textOf((await store.get(s, hashes.abc)).content)).toBe("abc");
    }),
  );

  test(
    "keeps the time of the first commit, and what was committed as it was described",
    fixture(async ({ clock, store }) => {
      await store.put(s, bytesOf("abc"), { ...text, label: "first" });
      clock.advance(10);
      await store.put(s, bytesOf("abc"), { ...text, label: "second" });
      await store.commit(s, [hashes.abc]);
      clock.advance(10);
      await store.commit(s, [hashes.abc]);
      await store.put(s, bytesOf("abc"), { ...text, label: "third" });
      expect((await store.list(s)).items).toEqual([
        {
          id: hashes.abc,
          size: 3,
          mediaType: "text/plain",
          label: "second",
          intentAt: 1_010,
          committedAt: 1_010,
        },
      ]);
    }),
  );

  test(
    "belongs to each session: what one has or commits, another does not",
    fixture(async ({ database, store }) => {
      const other = { id: "other" };
      await createSession(database, "other");
      await store.put(s, bytesOf("abc"), { ...text, label: "of s" });
      expect((await rejection(store.get(other, hashes.abc))).code).toBe("ATTACHMENT_NOT_FOUND");
      await store.put(other, bytesOf("abc"), { ...text, label: "of other" });
      expect(await store.commit(s, [hashes.abc])).toEqual([]);
      expect((await store.listUncommitted(s, 9_000)).items).toEqual([]);
      expect((await store.listUncommitted(other, 9_000)).items).toMatchObject([
        { label: "of other" },
      ]);
      await sessions(database).erase("s");
      expect(textOf((await store.get(other, hashes.abc)).content)).toBe("abc");
      const copies = await database.read("copies", () =>
        row(sql`SELECT count(*) AS n FROM holdfast_attachment_copy`),
      );
      expect(copies).toEqual({ n: 1 });
    }),
  );

  test(
    "of a fork begins with what was committed before it",
    fixture(async ({ database, store }) => {
      const fork = { id: "fork" };
      await createSession(database, "fork");
      for (const name of ["one", "two"])
        await store.put(s, bytesOf(name), { ...text, label: name });
      await store.commit(s, [hashes.one]);
      const share = (): Promise<number> =>
        database.write("fork", function* () {
          const from = yield* lockedSession({ id: "s" as SessionId });
          const to = yield* lockedSession({ id: "fork" as SessionId });
          return yield* shareAttachments(from, to);
        });
      expect([await share(), await share()]).toEqual([1, 0]);
      await sessions(database).erase("s");
      expect((await store.list(fork)).items).toMatchObject([
        { id: hashes.one, label: "one", committedAt: 1_000 },
      ]);
      expect(textOf((await store.get(fork, hashes.one)).content)).toBe("one");
    }),
  );

  test(
    "is listed page by page",
    fixture(async ({ store }) => {
      for (const name of ["one", "two", "three"]) await store.put(s, bytesOf(name), text);
      const first = await store.list(s, { limit: 2 });
      const after = first.next ?? "";
      const rest = await store.list(s, { limit: 2, after });
      expect(rest.next).toBeUndefined();
      const ids = [...first.items, ...rest.items].map(({ id }) => id);
      expect(ids).toEqual([hashes.two, hashes.one, hashes.three]);
      // All of one instant, so that the ids decide; then nothing is left out.
      const open = await store.listUncommitted(s, 1_000, { limit: 2 });
      const last = await store.listUncommitted(s, 1_000, {
        limit: 2,
        after: open.next ?? "",
      });
      expect(last.next).toBeUndefined();
      expect([...open.items, ...last.items].map(({ id }) => id)).toEqual(ids);
      expect(await rejection(store.listUncommitted(s, 1_000, { after: "x!" }))).toMatchObject({
        code: "CURSOR_INVALID",
      });
    }),
  );
}

function sessionTests(fixture: InFixture): void {
  test(
    "[A47] are pending until exactly those ids are committed",
    fixture(async ({ store }) => {
      const mine = store.ofSession(s);
      const one = await mine.put(bytesOf("one"), text);
      expect(one.id).toBe(hashes.one);
      expect((await store.listUncommitted(s, 1_000)).items).toMatchObject([{ id: hashes.one }]);
      await mine.put(bytesOf("two"), text);
      await mine.put(bytesOf("one"), text);
      expect(mine.pending).toEqual([hashes.one, hashes.two]);
      mine.committed([hashes.three]);
      expect(mine.pending).toEqual([hashes.one, hashes.two]);
      mine.committed([hashes.one]);
      expect(mine.pending).toEqual([hashes.two]);
      expect(textOf((await mine.get(hashes.one)).content)).toBe("one");
    }),
  );

  test(
    "are fenced when the session is deleted and made anew",
    fixture(async ({ database, store }) => {
      const mine = store.ofSession({ id: "s", generation: 1 });
      await database.write("delete", () => run(sql`UPDATE holdfast_session SET deleted_at = ${1}`));
      await createSession(database, "s", 2);
      const before = await dump(database);
      expect((await rejection(mine.put(bytesOf("abc"), text))).code).toBe("SESSION_DELETED");
      expect(await dump(database)).toEqual(before);
    }),
  );
}
