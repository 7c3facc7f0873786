import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { blobs } from "../../../src/blobs.ts";
import { row, sql, type Statement, type Database } from "../../../src/kernel.ts";
import type { BlobProfile } from "../../../src/model/blob.ts";
import { rejection, withDatabase, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { bytesOf, dump, hashes, textOf } from "./owners.ts";
import { pastChecks } from "../past-checks.ts";

const state = { name: "tool-state", isCompressible: true };

function damage(database: Database, statement: Statement): Promise<unknown> {
  return database.write("damage", () => pastChecks(database, statement));
}

interface Form {
  readonly encoding: string;
  readonly kind: string;
  readonly size: number;
  readonly stored: number;
}

function formOf(database: Database, hash: string): Promise<Form | undefined> {
  return database.read("formOf", () =>
    row<Form>(sql`
      SELECT encoding, kind, size, length(content) AS stored FROM holdfast_blob WHERE hash = ${hash}`),
  );
}

export function blobsSuite(backend: Backend): void {
  describe("a damaged blob", () => {
    damageTests(backend);
  });
  describe("a blob that cannot be stored", () => {
    refusalTests(backend);
  });
  describe("storing a blob", () => {
    storingTests(backend);
  });
  describe("compressing a blob", () => {
    compressionTests(backend);
  });
}

function damageTests(backend: Backend): void {
  const corrupt = (key: string) => ({
    code: "CORRUPT_ROW",
    details: { table: "holdfast_blob", key },
  });

  test("[AX14] one byte of plain content that was changed is an error with table and key", () =>
    withDatabase(backend, async (database) => {
      const store = blobs(database);
      await store.put(bytesOf("abc"));
      await damage(database, sql`UPDATE holdfast_blob SET content = ${bytesOf("abd")}`);
      expect(await rejection(store.get(hashes.abc))).toMatchObject(corrupt(hashes.abc));
    }));

  test("[AX14] every single byte of compressed content, changed, is noticed", () =>
    withDatabase(backend, async (database) => {
      const store = blobs(database, { profile: "compact" });
      const text = "abcdefgh".repeat(200);
      const { hash } = await store.put(bytesOf(text), { kind: state });
      const found = await database.read("content", () =>
        row<{ content: Uint8Array }>(sql`SELECT content FROM holdfast_blob`),
      );
      const content = found?.content ?? new Uint8Array();
      expect(content.length).toBeLessThan(60);
      for (let at = 0; at < content.length; at += 1) {
        const changed = new Uint8Array(content);
        changed[at] = (changed[at] ?? 0) ^ 0x55;
        await damage(database, sql`UPDATE holdfast_blob SET content = ${changed}`);
        // Some bits of the header mean nothing: then the content is the same.
        const read = await store.get(hash).then(
          (blob) => textOf(blob?.content),
          (error: unknown) => (error as { code?: string }).code,
        );
        expect(["CORRUPT_ROW", text]).toContain(read);
        if (at > 1) expect(read).toBe("CORRUPT_ROW");
      }
    }));

  test.each([
    ["half of its content", sql`content = ${new Uint8Array([0x78, 0x9c, 0x4b])}`],
    ["no content", sql`content = ${new Uint8Array()}`],
    ["a smaller size than it inflates to", sql`size = ${1_599}`],
    ["a larger size", sql`size = ${1_601}`],
    ["a size beyond every blob", sql`size = ${9_007_199_254_740_991}`],
    ["a negative size", sql`size = ${-1}`],
    ["another encoding", sql`encoding = ${"identity"}`],
    ["an unknown encoding", sql`encoding = ${"zstd"}`],
  ])("[AX14] with %s is an error with table and key", (_, change) =>
    withDatabase(backend, async (database) => {
      const store = blobs(database, { profile: "compact" });
      const { hash } = await store.put(bytesOf("abcdefgh".repeat(200)), {
        kind: state,
      });
      await damage(database, sql`UPDATE holdfast_blob SET ${change}`);
      expect(await rejection(store.get(hash))).toMatchObject(corrupt(hash));
    }),
  );
}

function refusalTests(backend: Backend): void {
  test("[AX18] is told: a failed write is no hash", () =>
    withDatabase(backend, async (database) => {
      await damage(database, sql`DROP TABLE holdfast_blob`);
      expect(await rejection(blobs(database).put(bytesOf("abc")))).toMatchObject({
        code: "STATEMENT_FAILED",
      });
    }));

  test("[AX18] is told when the database is closed", () =>
    withDatabase(backend, async (database) => {
      await database.close();
      expect(await rejection(blobs(database).put(bytesOf("abc")))).toMatchObject({
        code: "DATABASE_CLOSED",
      });
    }));

  test("[AX20] a time beyond 2^53 is refused and changes nothing", () =>
    withDatabase(backend, async (database) => {
      for (const now of [2 ** 53, 2 ** 63]) {
        const clock = { ...manualClock(), now: () => now };
        const store = blobs(database, { clock });
        expect(await rejection(store.put(bytesOf("abc")))).toMatchObject({
          code: "PARAMETER_INVALID",
        });
      }
      expect(await dump(database)).toMatchObject({ blobs: [] });
    }));

  test("refuses what is too large, no bytes or badly named, and changes nothing", () =>
    withDatabase(backend, async (database) => {
      const store = blobs(database, { bytesMax: 3 });
      const refused = async (put: Promise<unknown>): Promise<unknown> =>
        (await rejection(put)).code;
      expect(await rejection(store.put(bytesOf("abcd")))).toMatchObject({
        code: "VALUE_TOO_LARGE",
        details: { size: 4, limit: 3 },
      });
      expect(await refused(store.put("abc" as never))).toBe("OPTION_INVALID");
      const kind = { name: "", isCompressible: true };
      expect(await refused(store.put(bytesOf("abc"), { kind }))).toBe("NAME_INVALID");
      expect(await refused(store.get("abc"))).toBe("ID_MALFORMED");
      expect(await refused(store.get(hashes.abc.toUpperCase()))).toBe("ID_MALFORMED");
      expect(() => blobs(database, { profile: "fast" as never })).toThrow(
        'Unknown profile: "fast"',
      );
      expect(() => blobs(database, { bytesMax: 0 })).toThrow("bytesMax");
      expect(await dump(database)).toMatchObject({ blobs: [] });
    }));
}

function storingTests(backend: Backend): void {
  test("addresses it by the SHA-256 of its bytes", () =>
    withDatabase(backend, async (database) => {
      const store = blobs(database);
      expect(await store.put(bytesOf("abc"))).toEqual({
        hash: hashes.abc,
        size: 3,
      });
      expect(await store.get(hashes.abc)).toEqual({
        hash: hashes.abc,
        kind: "generic",
        size: 3,
        content: bytesOf("abc"),
      });
      expect(await store.get(hashes.one)).toBeUndefined();
    }));

  test("takes no bytes at all for a blob too", () =>
    withDatabase(backend, async (database) => {
      const store = blobs(database, { profile: "compact" });
      const { hash } = await store.put(new Uint8Array(), { kind: state });
      expect(hash).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
      expect((await store.get(hash))?.content).toEqual(new Uint8Array());
    }));

  test("keeps what was given, whatever becomes of the caller's bytes", () =>
    withDatabase(backend, async (database) => {
      const store = blobs(database);
      const given = bytesOf("abc");
      const putting = store.put(given);
      given.fill(0);
      await putting;
      expect(textOf((await store.get(hashes.abc))?.content)).toBe("abc");
    }));

  test("keeps the first form of equal content", () =>
    withDatabase(backend, async (database) => {
      const content = bytesOf("a".repeat(5_000));
      const first = blobs(database, { profile: "balanced" });
      const { hash } = await first.put(content, { kind: state });
      const form = await formOf(database, hash);
      expect(form).toMatchObject({ encoding: "deflate", kind: "tool-state" });
      const second = blobs(database, { profile: "lowLatency" });
      expect(await second.put(content)).toEqual({ hash, size: 5_000 });
      expect(await formOf(database, hash)).toEqual(form);
    }));

  test("survives closing and opening", () =>
    withPlace(backend, async (place) => {
      if (!backend.survives) return;
      const database = await place.open();
      await blobs(database).put(bytesOf("abc"));
      await database.close();
      const again = blobs(await place.open());
      expect(textOf((await again.get(hashes.abc))?.content)).toBe("abc");
    }));

  test("stores the same content once for many who put it at once", () =>
    withDatabase(backend, async (database) => {
      const store = blobs(database);
      const all = await Promise.all(Array.from({ length: 20 }, () => store.put(bytesOf("abc"))));
      expect(new Set(all.map(({ hash }) => hash))).toEqual(new Set([hashes.abc]));
      const counted = await database.read("count", () =>
        row(sql`SELECT count(*) AS n FROM holdfast_blob`),
      );
      expect(counted).toEqual({ n: 1 });
    }));
}

function compressionTests(backend: Backend): void {
  const cases: readonly [BlobProfile, number, string][] = [
    ["lowLatency", 100_000, "identity"],
    ["balanced", 4_095, "identity"],
    ["balanced", 4_096, "deflate"],
    ["compact", 1_023, "identity"],
    ["compact", 1_024, "deflate"],
  ];
  test.each(cases)("%s stores %d bytes as %s", (profile, size, encoding) =>
    withDatabase(backend, async (database) => {
      const store = blobs(database, { profile });
      const content = bytesOf("a".repeat(size));
      const { hash } = await store.put(content, { kind: state });
      expect(await formOf(database, hash)).toMatchObject({ encoding, size });
      expect((await store.get(hash))?.content).toEqual(content);
    }),
  );

  test("is balanced unless told, and never in memory", () =>
    withDatabase(backend, async (database) => {
      const store = blobs(database);
      const { hash } = await store.put(bytesOf("a".repeat(4_096)), {
        kind: state,
      });
      expect((await formOf(database, hash))?.encoding).toBe(
        backend.survives ? "deflate" : "identity",
      );
    }));

  test("is left out for a kind that is not compressible, and where it gains nothing", () =>
    withDatabase(backend, async (database) => {
      const store = blobs(database, { profile: "compact" });
      const plain = await store.put(bytesOf("a".repeat(5_000)));
      expect((await formOf(database, plain.hash))?.encoding).toBe("identity");
      const noise = database.entropy.bytes(5_000);
      const random = await store.put(noise, { kind: state });
      expect(await formOf(database, random.hash)).toMatchObject({
        encoding: "identity",
        stored: 5_000,
      });
      expect((await store.get(random.hash))?.content).toEqual(noise);
    }));
}
