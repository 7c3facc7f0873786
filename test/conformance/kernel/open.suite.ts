import { describe, expect, test } from "vitest";
import { row, sql } from "../../../src/kernel.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { createNoteTable, noteCount } from "../notes.ts";
import { migrationNumbers, ownTableNames, schemaNumber } from "../../fixtures/schema.ts";

export function openSuite(backend: Backend): void {
  describe("opening", () => {
    test("makes the schema in an empty place and finds it again", () =>
      withPlace(backend, async (place) => {
        const database = await place.open();
        const found = await database.read("tick", () =>
          row<{ n: number; migrations: number }>(
            sql`SELECT n, (SELECT count(*) FROM holdfast_migration) AS migrations FROM holdfast_tick`,
          ),
        );
        expect(found).toMatchObject({ migrations: schemaNumber });
      }));

    test("tells the durability of its acknowledgements", () =>
      withPlace(backend, async (place) => {
        const database = await place.open();
        expect(database.durability).toBe(backend.survives ? "full" : "memory");
      }));

    if (backend.survives) survivingPlaces(backend);
  });
}

function survivingPlaces(backend: Backend): void {
  test("[A1] sixteen opens of a new database at once all succeed and make one schema", () =>
    withPlace(backend, async (place) => {
      const opened = await Promise.all(Array.from({ length: 16 }, () => place.open()));
      expect(opened).toHaveLength(16);
      expect(await place.shell("SELECT number FROM holdfast_migration")).toEqual(migrationNumbers);
    }));

  test("[A2] a schema newer than ours is refused with both numbers, and nothing changes", () =>
    withPlace(backend, async (place) => {
      await (await place.open()).close();
      await place.shell(
        "INSERT INTO holdfast_migration (number, name, checksum, schema_hash, applied_at) VALUES (99, 'future', 'x', 'x', 0)",
      );
      const error = await rejection(place.open());
      expect(error).toMatchObject({
        code: "SCHEMA_NEWER",
        details: { found: 99, expected: schemaNumber },
      });
      expect(error.message).toContain("99");
      expect(error.message).toContain(`schema ${schemaNumber}`);
      expect(await place.shell("SELECT count(*) AS n FROM holdfast_migration")).toEqual([
        { n: schemaNumber + 1 },
      ]);
    }));

  test("[A3] our tables without their migration table are refused by name, and nothing changes", () =>
    withPlace(backend, async (place) => {
      await (await place.open()).close();
      await place.shell("DROP TABLE holdfast_migration");
      const error = await rejection(place.open());
      expect(error).toMatchObject({
        code: "SCHEMA_ORPHANED",
        details: { tables: ownTableNames },
      });
      expect(await place.shell("SELECT n >= 0 AS there FROM holdfast_tick")).toHaveLength(1);
    }));

  test("[E85] a schema that is not the one we know is refused; the app's own tables are left alone", () =>
    withPlace(backend, async (place) => {
      await place.shell(
        "CREATE TABLE app_user (id INTEGER)",
        "INSERT INTO app_user (id) VALUES (7)",
      );
      const first = await place.open();
      await first.write("tables", createNoteTable);
      expect(await noteCount(first)).toBe(0);
      await first.close();
      expect(await place.shell("SELECT id FROM app_user")).toEqual([{ id: 7 }]);

      await place.shell("UPDATE holdfast_migration SET checksum = 'other' WHERE number = 1");
      const edited = await rejection(place.open());
      expect(edited).toMatchObject({
        code: "SCHEMA_ALTERED",
        details: { migration: 1 },
      });
      expect(await place.shell("SELECT checksum FROM holdfast_migration WHERE number = 1")).toEqual(
        [{ checksum: "other" }],
      );
    }));

  test("a table of ours that somebody altered is refused", () =>
    withPlace(backend, async (place) => {
      await (await place.open()).close();
      await place.shell("ALTER TABLE holdfast_tick ADD COLUMN extra TEXT");
      const error = await rejection(place.open());
      expect(error).toMatchObject({ code: "SCHEMA_ALTERED" });
      expect(error.message).toContain("holdfast_*");
    }));
}
