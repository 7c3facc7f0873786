import { describe, expect, test } from "vitest";
import { done, operation, row, rows, sql, type Database } from "../../src/kernel.ts";
import { appendEntry, refusedPayload } from "../fixtures/append-entry.ts";
import { Barrier } from "./barrier.ts";
import { createHeads, logOf } from "./log.ts";
import { rejection } from "../conformance/backend.ts";
import { withPlace } from "./place.ts";

describe("calls that run as a set", () => {
  test("share a commit", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const heads = await createHeads(database, 50);
      const before = database.stats();
      await Promise.all(
        heads.map((head) =>
          database.write(appendEntry, {
            head,
            expectedVersion: 0,
            payload: "p",
          }),
        ),
      );
      const { commits, calls, batchSize } = database.stats();
      expect(calls - before.calls).toBe(50);
      expect(commits - before.commits).toBe(1);
      expect(batchSize.max).toBe(50);
    }));

  test("keep the order of one key, whoever is ahead of them", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const [first = 0, second = 0] = await createHeads(database, 2);
      const answers = await Promise.all(
        [0, 1, 2, 3].flatMap((expectedVersion) =>
          [first, second].map((head) =>
            database.write(appendEntry, {
              head,
              expectedVersion,
              payload: `p${expectedVersion}`,
            }),
          ),
        ),
      );
      expect(answers.map((answer) => answer.version)).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
      expect(await logOf(database)).toBe(
        "1:1 p0, 1:2 p1, 1:3 p2, 1:4 p3, 2:1 p0, 2:2 p1, 2:3 p2, 2:4 p3",
      );
    }));

  test("are not overtaken by a later call of the key that runs alone", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const [head = 0] = await createHeads(database, 1);
      const entry = (expectedVersion: number, payload: string) => ({
        head,
        expectedVersion,
        payload,
      });
      const settled = await Promise.allSettled([
        database.write(appendEntry, entry(0, "a")),
        // Passed over by the set, so that `one` decides: a conflict.
        database.write(appendEntry, entry(7, "never")),
        database.write(appendEntry, entry(1, "b")),
      ]);
      expect(settled).toMatchObject([
        { value: { version: 1 } },
        { reason: { code: "VERSION_CONFLICT", expectedVersion: 7 } },
        { value: { version: 2 } },
      ]);
      expect(await logOf(database)).toBe("1:1 a, 1:2 b");
    }));

  test("succeed although one of them makes the whole set fail", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const heads = await createHeads(database, 20);
      const settled = await Promise.allSettled(
        heads.map((head, index) =>
          database.write(appendEntry, {
            head,
            expectedVersion: 0,
            payload: index === 7 ? refusedPayload : "p",
          }),
        ),
      );
      settled.forEach((result, index) =>
        expect(result).toMatchObject(
          index === 7
            ? {
                reason: {
                  code: "CONSTRAINT_VIOLATED",
                  details: { constraint: "app_log_payload" },
                },
              }
            : { value: { version: 1 } },
        ),
      );
      expect((await logOf(database)).split(", ")).toHaveLength(19);
      expect(database.stats().reruns).toBe(1);
    }));

  test("do not wait for a row that a slow transaction has locked", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const heads = await createHeads(database, 10);
      const shell = place.shell();
      await shell`BEGIN`;
      await shell`SELECT key FROM app_log_head WHERE key = ${heads[3] ?? 0} FOR UPDATE`;
      const calls = heads.map((head) =>
        database.write(appendEntry, { head, expectedVersion: 0, payload: "p" }),
      );
      const [locked] = calls.splice(3, 1);
      await Promise.all(calls);
      expect((await logOf(database)).split(", ")).toHaveLength(9);
      await shell`COMMIT`;
      expect(await locked).toEqual({ version: 1 });
    }));

  test("of two processes never apply one version twice or skip one", () =>
    withPlace(async (place) => {
      const databases = [await place.open(), await place.open()];
      const heads = await createHeads(databases[0] ?? (await place.open()), 4);
      const known = new Map(heads.map((head) => [head, 0]));
      let applied = 0;
      const contend = async (database: Database, head: number): Promise<void> => {
        for (let round = 0; round < 15; round += 1) {
          const expectedVersion = known.get(head) ?? 0;
          const entry = { head, expectedVersion, payload: "p" };
          await database.write(appendEntry, entry).then(
            ({ version }) => {
              known.set(head, version);
              applied += 1;
            },
            (error: unknown) => expect(error).toMatchObject({ code: "VERSION_CONFLICT" }),
          );
        }
      };
      await Promise.all(
        [...databases, ...databases, ...databases].flatMap((database) =>
          heads.map((head) => contend(database, head)),
        ),
      );
      const [database = await place.open()] = databases;
      const stored = await database.read("stored", () =>
        rows<{ n: number; newest: number; version: number }>(sql`
          SELECT count(*) AS n, max(e.version) AS newest, max(h.version) AS version
          FROM app_log_head h JOIN app_log e ON e.head = h.key GROUP BY h.key`),
      );
      for (const { n, newest, version } of stored) expect([n, newest]).toEqual([version, version]);
      expect(stored.reduce((sum, { n }) => sum + n, 0)).toBe(applied);
    }));

  test("are split when their inputs are large", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const heads = await createHeads(database, 6);
      const before = database.stats().commits;
      await Promise.all(
        heads.map((head) =>
          database.write(appendEntry, {
            head,
            expectedVersion: 0,
            payload: "x".repeat(600_000),
          }),
        ),
      );
      expect(database.stats().commits - before).toBe(6);
    }));

  test("are at most 256", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const sizes: number[] = [];
      const count = operation("count", {
        isolation: "readCommitted",
        key: (input: { readonly id: string }) => input.id,
        *one() {
          yield* row(sql`SELECT 1 AS one`);
        },
        *many(inputs) {
          sizes.push(inputs.length);
          yield* row(sql`SELECT 1 AS one`);
          return inputs.map(() => done(undefined));
        },
      });
      await Promise.all(
        Array.from({ length: 600 }, (_, index) => database.write(count, { id: `${index}` })),
      );
      expect(sizes.toSorted((a, b) => b - a)).toEqual([256, 256, 88]);
    }));

  test("run in as many lanes as told, and gather while these are taken", () =>
    withPlace(async (place) => {
      for (const setFormLanes of [1, 3]) {
        const database = await place.open({ setFormLanes, poolSize: 4 });
        const barrier = await Barrier.raise(place);
        let running = 0;
        let most = 0;
        const slow = operation("slow", {
          isolation: "readCommitted",
          key: (input: { readonly id: string }) => input.id,
          *one() {
            yield* row(sql`SELECT 1 AS one`);
            return 1;
          },
          *many(inputs) {
            running += 1;
            most = Math.max(most, running);
            yield* barrier.stop();
            running -= 1;
            return inputs.map(() => done(inputs.length));
          },
        });
        const write = (id: string, size: number) =>
          database.write(slow, { id, padding: "x".repeat(size) } as {
            readonly id: string;
          });
        // Too large to share a set.
        const large = ["a", "b", "c", "d"].map((id) => write(id, 700_000));
        await barrier.stopped(setFormLanes);
        const small = ["e", "f", "g"].map((id) => write(id, 1));
        await barrier.lift();
        await Promise.all(large);
        expect(most).toBe(setFormLanes);
        // Together, and perhaps with the last of the large ones.
        const [size = 0, ...sizes] = await Promise.all(small);
        expect(size).toBeGreaterThanOrEqual(3);
        expect(sizes).toEqual([size, size]);
      }
    }));

  test("that answer for too few inputs are the set form's mistake, and `one` decides", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const forgetful = operation("forgetful", {
        isolation: "readCommitted",
        key: (input: { readonly id: string }) => input.id,
        *one({ id }) {
          yield* row(sql`SELECT 1 AS one`);
          return `one ${id}`;
        },
        *many() {
          yield* row(sql`SELECT 1 AS one`);
          return [];
        },
      });
      expect(
        await Promise.all([
          database.write(forgetful, { id: "a" }),
          database.write(forgetful, { id: "b" }),
        ]),
      ).toEqual(["one a", "one b"]);
    }));

  test("tell subscribers of those that succeeded, once each", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const heads = await createHeads(database, 3);
      const heard: string[] = [];
      database.subscribe((hint) => {
        if (hint.kind === "change") heard.push(hint.key);
      });
      await Promise.allSettled(
        heads.map((head, index) =>
          database.write(appendEntry, {
            head,
            expectedVersion: index === 1 ? 5 : 0,
            payload: "p",
          }),
        ),
      );
      expect(heard).toEqual([String(heads[0]), String(heads[2])]);
    }));

  test("bind arrays of text, numbers, bytes and nulls as they are", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const texts = ['a "b" \\ {c}', "", "NULL", null, "naïve 🪢, d"];
      const found = await database.read("arrays", () =>
        rows<{ t: unknown; n: unknown; b: unknown }>(sql`
          SELECT t, n, b FROM unnest(
            ${texts}::text[],
            ${[1, -2, null, 9_007_199_254_740_991, 5n]}::bigint[],
            ${[new Uint8Array([0, 92, 34, 255]), null, new Uint8Array(), null, null]}::bytea[]
          ) AS given(t, n, b)`),
      );
      expect(found.map(({ t }) => t)).toEqual(texts);
      expect(found.map(({ n }) => n)).toEqual([1, -2, null, 9_007_199_254_740_991, 5]);
      expect(found.map(({ b }) => b)).toEqual([
        new Uint8Array([0, 92, 34, 255]),
        null,
        new Uint8Array(),
        null,
        null,
      ]);
      expect(
        await rejection(database.read("bad", () => row(sql`SELECT unnest(${["a\0b"]}::text[])`))),
      ).toMatchObject({ code: "PARAMETER_INVALID", details: { position: 1 } });
    }));
});
