import { closeSync, openSync, writeSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { moveToPostgres } from "../../../src/open/move/move-to-postgres.ts";
import { HoldfastError, openHoldfast } from "../../../src/index.ts";
import { sessions } from "../../../src/sessions.ts";
import type { Database } from "../../../src/kernel.ts";
import { executions } from "../../../src/executions.ts";
import { ann } from "../../conformance/execution/fixture.ts";
import { driverName } from "../../sqlite/place.ts";
import type { Folder } from "../../sqlite/place.ts";
import { until, withPlace } from "../place.ts";
import {
  filled,
  giveUp,
  move,
  movedTables,
  rejection,
  targetCounts,
  targetFilled,
  withBoth,
} from "./moving.ts";

async function small(folder: Folder): Promise<void> {
  const database = await folder.open();
  await sessions(database).create("chat");
  await database.close();
}

async function idsOf(database: Database): Promise<readonly string[]> {
  const { items } = await sessions(database).list();
  return items.map(({ id }) => id as string).toSorted();
}

/** Overwrites the page that a table begins with. */
function damaged(folder: Folder, table: string): void {
  const [found] = folder.shell([`SELECT rootpage FROM sqlite_schema WHERE name = '${table}'`]);
  folder.shell(["PRAGMA wal_checkpoint(TRUNCATE)"]);
  const { rootpage } = found as { readonly rootpage: number };
  const file = openSync(folder.file(), "r+");
  writeSync(file, Buffer.alloc(4096, 7), 0, 4096, (rootpage - 1) * 4096);
  closeSync(file);
}

describe("a target", () => {
  test("that has data is refused, and both stay as they were", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      await sessions(await place.open()).create("mine");
      expect(await rejection(move(folder, place))).toMatchObject({
        code: "TARGET_NOT_EMPTY",
        details: { tables: ["holdfast_session"] },
      });
      await sessions(await folder.open()).create("goes on");
      expect(await targetFilled(place)).toEqual(["holdfast_payload_codec", "holdfast_session"]);
    }));

  test("on which a worker has counted for a limit is empty, and takes the rows of the source", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      const target = executions(await place.open());
      await target.lockPending({
        functions: [{ name: "mail", concurrencyMax: 1 }],
        limit: 1,
        holder: ann,
        lease: "1 minute",
      });
      await move(folder, place);
      expect(await idsOf(await place.open())).toEqual(["chat"]);
    }));

  test("that was only opened before is empty, and takes the secret of the source", () =>
    withBoth(async (folder, place) => {
      await filled(folder);
      const holdfast = await openHoldfast(place.url, {
        postgres: { schema: place.schema, poolSize: 2 },
      });
      await holdfast.close();
      const secret = folder.shell(["SELECT secret FROM holdfast_await_secret"]);
      await move(folder, place);
      const found = await place.shell()`SELECT secret FROM holdfast_await_secret`;
      expect([...found].map((row) => ({ ...row }))).toEqual(secret);
    }));

  test("that another move went to is refused", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      await move(folder, place);
      const other = await folder.open({}, {}, "other.db");
      await other.close();
      expect(
        await rejection(
          moveToPostgres(folder.file("other.db"), place.url, {
            sqlite: { driver: driverName },
            postgres: { schema: place.schema },
          }),
        ),
      ).toMatchObject({ code: "TARGET_NOT_EMPTY" });
    }));

  test("that changes what it is given is found out, and nothing of the copy is kept", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      await place.open();
      const shell = place.shell();
      await shell.unsafe(`
        CREATE FUNCTION ${place.schema}.odd() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN NEW.id := NEW.id || '!'; RETURN NEW; END $$;
        CREATE TRIGGER odd BEFORE INSERT ON holdfast_session FOR EACH ROW EXECUTE FUNCTION ${place.schema}.odd()`);
      expect(await rejection(move(folder, place))).toMatchObject({
        code: "MOVE_MISMATCH",
        details: { table: "holdfast_session" },
      });
      expect(await targetFilled(place)).toEqual([]);
      await shell.unsafe(`
        DROP TRIGGER odd ON holdfast_session; DROP FUNCTION ${place.schema}.odd`);
      expect((await move(folder, place)).isRepeated).toBe(false);
    }));

  test("that another process is moving to is left to it", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      await place.open();
      const shell = place.shell();
      // Somebody writes to the target, which the first one waits for.
      await shell`BEGIN`;
      await shell`LOCK TABLE holdfast_session IN ROW EXCLUSIVE MODE`;
      const first = move(folder, place);
      const watch = place.shell();
      await until(async () => {
        const [found] = await watch`
          SELECT count(*)::int AS waiting FROM pg_locks
          WHERE relation = 'holdfast_session'::regclass AND NOT granted`;
        return found?.["waiting"] === 1;
      });
      expect(await rejection(move(folder, place))).toMatchObject({
        code: "MOVE_UNDER_WAY",
        retryable: true,
      });
      await shell`COMMIT`;
      expect((await first).isRepeated).toBe(false);
    }));
});

describe("a source", () => {
  test("takes no writes once it was moved, from those who had it open and those who come later, and can be read", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      const before = await folder.open();
      await sessions(before).create("before");
      const lazy = await folder.open();
      await move(folder, place);
      for (const database of [before, lazy])
        expect(await rejection(sessions(database).create("late"))).toMatchObject({
          code: "MOVED_TO_POSTGRES",
          retryable: false,
        });
      expect(await idsOf(before)).toEqual(["before", "chat"]);
      expect(await rejection(folder.open())).toMatchObject({
        code: "MOVED_TO_POSTGRES",
        details: { state: "moved" },
      });
      const reader = await folder.open({ readOnly: true });
      expect(await idsOf(reader)).toEqual(["before", "chat"]);
    }));

  test("that was moved is found so again, and refused another target", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      const first = await move(folder, place);
      expect(await move(folder, place)).toEqual({
        ...first,
        isRepeated: true,
      });
      await withPlace(async (elsewhere) => {
        expect(await rejection(move(folder, elsewhere))).toMatchObject({
          code: "MOVED_TO_POSTGRES",
        });
      });
      expect(await rejection(giveUp(folder, place))).toMatchObject({
        code: "MOVE_ARRIVED",
      });
    }));

  test("that is no file, not there, newer or damaged is refused, and nothing is changed", () =>
    withBoth(async (folder, place) => {
      const options = {
        sqlite: { driver: driverName },
        postgres: { schema: place.schema },
      };
      const moved = (path: unknown): Promise<unknown> =>
        rejection(moveToPostgres(path as string, place.url, options));
      expect(await moved(":memory:")).toMatchObject({
        code: "DATABASE_PATH_INVALID",
      });
      expect(await moved(folder.file("none.db"))).toMatchObject({
        code: "DATABASE_NOT_FOUND",
      });
      await small(folder);
      folder.shell(["INSERT INTO holdfast_migration VALUES (1000, 'next', 'x', 'x', 0)"]);
      expect(await moved(folder.file())).toMatchObject({
        code: "SCHEMA_NEWER",
      });
      folder.shell(["DELETE FROM holdfast_migration WHERE number = 1000"]);
      damaged(folder, "holdfast_session_usage");
      expect(await moved(folder.file())).toMatchObject({
        code: "DATABASE_DAMAGED",
      });
      expect(await targetFilled(place)).toEqual([]);
      expect(folder.shell(["SELECT * FROM holdfast_move"])).toEqual([]);
    }));

  test("given as something else, or with a URL that is none, is refused with an error of ours", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      const hostile: readonly unknown[] = [
        undefined,
        null,
        7,
        "",
        "\0",
        {},
        [],
        "http://x",
        Symbol("s"),
      ];
      const calls = hostile.flatMap((value) => [
        () => moveToPostgres(value as string, place.url),
        () => moveToPostgres(folder.file(), value as string),
      ]);
      for (const options of [null, 7, "x", { odd: 1 }, { signal: 1 }])
        calls.push(() => moveToPostgres(folder.file(), place.url, options as never));
      for (const call of calls) expect(await rejection(call())).toBeInstanceOf(HoldfastError);
      await sessions(await folder.open()).create("still");
    }));
});

describe("a move that was interrupted", () => {
  test("at any table leaves nothing in the target and a source that is refused; it is continued or given up", () =>
    withBoth(async (folder, place) => {
      await filled(folder);
      let table = 0;
      for (const phase of ["copying", "verifying"] as const)
        for (const number of [1, 17, movedTables.length]) {
          const controller = new AbortController();
          const interrupted = move(folder, place, {
            signal: controller.signal,
            onProgress(progress) {
              if (progress.phase === phase && progress.number === number) controller.abort();
            },
          });
          expect(await rejection(interrupted)).toMatchObject({
            code: "ABORTED",
            details: { isBegun: true },
          });
          expect(await rejection(folder.open())).toMatchObject({
            code: "MOVED_TO_POSTGRES",
            details: { state: "moving" },
          });
          if ((table += 1) % 2 === 0) continue;
          await giveUp(folder, place);
          await (await folder.open()).close();
        }
      expect(await targetFilled(place)).toEqual([]);
      await move(folder, place);
      expect(Object.values(await targetCounts(place))).not.toContain(0);
    }));

  test("before it began, also while the source is checked, says so and changes nothing", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      for (const isEarly of [true, false]) {
        const controller = new AbortController();
        if (isEarly) controller.abort();
        const interrupted = move(folder, place, { signal: controller.signal });
        // The check of the source is the first that takes time.
        if (!isEarly) controller.abort();
        expect(await rejection(interrupted)).toMatchObject({
          code: "ABORTED",
          message: "The move was interrupted before it started; nothing was changed.",
          details: { isBegun: false },
        });
      }
      await (await folder.open()).close();
      expect(await targetFilled(place)).toEqual([]);
    }));

  test("is continued and given up with its own target alone, unless that is gone", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      const controller = new AbortController();
      await rejection(
        move(folder, place, {
          signal: controller.signal,
          onProgress: () => controller.abort(),
        }),
      );
      await withPlace(async (elsewhere) => {
        for (const wrong of [move, giveUp])
          expect(await rejection(wrong(folder, elsewhere))).toMatchObject({
            code: "MOVE_ELSEWHERE",
          });
        await giveUp(folder, elsewhere, { isTargetGone: true });
        expect(await rejection(giveUp(folder, place))).toMatchObject({
          code: "MOVE_NOT_BEGUN",
        });
        await move(folder, elsewhere);
        expect(await targetFilled(elsewhere)).toContain("holdfast_session");
      });
    }));
});
