import { describe, expect, test } from "vitest";
import { run, sql, type Database } from "../../../src/kernel.ts";
import { attachments } from "../../../src/sessions.ts";
import type { Attachments } from "../../../src/sessions.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { bytesOf, createSession, hashes, textOf } from "../blob/owners.ts";
import { byteStoreKinds } from "./byte-stores.ts";
import type { ByteStoreKind } from "./byte-stores.ts";

const text = { mediaType: "text/plain" };
const s = { id: "s" };

export function byteStoresSuite(backend: Backend): void {
  for (const kind of byteStoreKinds)
    describe(`attachments in ${kind.name}`, () => {
      byteStoreTests(backend, kind);
    });
}

function byteStoreTests(backend: Backend, kind: ByteStoreKind): void {
  const withStore = (
    body: (fixture: {
      readonly database: Database;
      readonly store: Attachments;
      readonly left: () => readonly string[];
      readonly reopen: () => Promise<Attachments>;
    }) => Promise<void>,
  ) =>
    withPlace(backend, (place) =>
      kind.run(async (bytesOn, left) => {
        const database = await place.open();
        await createSession(database, "s");
        const store = attachments(database, { bytes: bytesOn(database) });
        const reopen = async (): Promise<Attachments> => {
          await database.close();
          const again = await place.open();
          return attachments(again, { bytes: bytesOn(again) });
        };
        await body({ database, store, left, reopen });
      }),
    );

  test("[A46] come back as they were put, described as they were", () =>
    withStore(async ({ store, left }) => {
      const description = {
        mediaType: "image/png",
        width: 640,
        height: 0,
        label: "a cat 🐈",
      };
      const content = new Uint8Array([0, 255, 13, 10, 0]);
      const put = await store.put(s, content, description);
      expect(put.size).toBe(5);
      expect(await store.get(s, put.id)).toEqual({
        attachment: put,
        content,
      });
      expect(put).toMatchObject(description);
      expect((await store.put(s, content, description)).id).toBe(put.id);
      const empty = await store.put(s, new Uint8Array(), text);
      expect((await store.get(s, empty.id)).content).toEqual(new Uint8Array());
      expect(left().filter((name) => name.endsWith(".tmp"))).toEqual([]);
    }));

  test("[A46] of several megabytes come back whole", () =>
    withStore(async ({ store }) => {
      const content = new Uint8Array(2_621_440).fill(7, 1_048_570, 2_097_160);
      const put = await store.put(s, content, text);
      const back = await store.get(s, put.id);
      expect(Buffer.compare(back.content, content)).toBe(0);
    }));

  test("[A46] of an unknown id are not found", () =>
    withStore(async ({ store }) => {
      expect(await rejection(store.get(s, hashes.abc))).toMatchObject({
        code: "ATTACHMENT_NOT_FOUND",
        details: { id: hashes.abc },
      });
      expect((await rejection(store.get(s, "../abc"))).code).toBe("ID_MALFORMED");
    }));

  test("[A46] say whether they last, and do", () =>
    withStore(async ({ store, reopen }) => {
      expect(store.isDurable).toBe(kind.isDurable(backend));
      if (!backend.survives) return;
      await store.put(s, bytesOf("abc"), text);
      const again = await reopen();
      expect(textOf((await again.get(s, hashes.abc)).content)).toBe("abc");
      expect((await again.listUncommitted(s, 8.64e15)).items).toMatchObject([
        { id: hashes.abc, mediaType: "text/plain" },
      ]);
    }));

  test("are an error when their bytes were changed or are gone", () =>
    withStore(async ({ database, store }) => {
      await store.put(s, bytesOf("abc"), text);
      for (const content of [bytesOf("abd"), bytesOf("abcd"), undefined]) {
        await kind.damage(database, content);
        expect(await rejection(store.get(s, hashes.abc))).toMatchObject({
          code: "CORRUPT_ROW",
          details: { table: "holdfast_attachment_copy" },
        });
      }
      await store.commit(s, [hashes.abc]);
      await database.write("lose", () => run(sql`DELETE FROM holdfast_attachment_copy`));
      expect(await rejection(store.get(s, hashes.abc))).toMatchObject({
        code: "CORRUPT_ROW",
        details: { table: "holdfast_attachment", key: hashes.abc },
      });
    }));

  test("are mended by putting them again", () =>
    withStore(async ({ database, store, left }) => {
      await store.put(s, bytesOf("abc"), text);
      await store.commit(s, [hashes.abc]);
      for (const content of [bytesOf("abd"), undefined]) {
        await kind.damage(database, content);
        await store.put(s, bytesOf("abc"), text);
        expect(textOf((await store.get(s, hashes.abc)).content)).toBe("abc");
        expect(await store.removeForgotten()).toMatchObject({ removed: 1 });
      }
      expect(left().length).toBeLessThanOrEqual(1);
    }));

  test("keep what was given, whatever becomes of the caller's bytes", () =>
    withStore(async ({ store }) => {
      const given = bytesOf("abc");
      const putting = store.put(s, given, text);
      given.fill(0);
      await putting;
      expect(textOf((await store.get(s, hashes.abc)).content)).toBe("abc");
    }));

  test("may be put many times at once", () =>
    withStore(async ({ store, left }) => {
      await Promise.all(Array.from({ length: 10 }, () => store.put(s, bytesOf("abc"), text)));
      expect(textOf((await store.get(s, hashes.abc)).content)).toBe("abc");
      await store.removeForgotten();
      expect(left().length).toBeLessThanOrEqual(1);
      expect(textOf((await store.get(s, hashes.abc)).content)).toBe("abc");
    }));
}
