import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { artifacts, blobKinds } from "../../../src/blobs.ts";
import { run, sql } from "../../../src/kernel.ts";
import { rejection, withDatabase, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { bytesOf, dump, hashes, textOf } from "../blob/owners.ts";

export function artifactsSuite(backend: Backend): void {
  describe("a damaged artifact", () => {
    test("[A54] is an error on load when its content was changed", () =>
      withDatabase(backend, async (database) => {
        const store = artifacts(database);
        await store.put("modules", "main", bytesOf("abc"), {
          kind: blobKinds.module,
        });
        await database.write("damage", () =>
          run(sql`UPDATE holdfast_blob SET content = ${bytesOf("abd")}`),
        );
        const corrupt = {
          code: "CORRUPT_ROW",
          details: { table: "holdfast_blob", key: hashes.abc },
        };
        expect(await rejection(store.get("modules", "main"))).toMatchObject(corrupt);
        expect(await rejection(store.load("modules", "main"))).toMatchObject(corrupt);
      }));

    test("[A54] is what it was for those who have verified it, and an error for others", () =>
      withDatabase(backend, async (database) => {
        const store = artifacts(database);
        await store.put("modules", "main", bytesOf("abc"), { kind: blobKinds.module });
        const loaded = await store.load("modules", "main");
        loaded.content.fill(0);
        await database.write("damage", () =>
          run(sql`UPDATE holdfast_blob SET content = ${bytesOf("abd")}`),
        );
        for (const again of [
          await store.load("modules", "main"),
          await store.get("modules", "main"),
          await database.read("load", store.load.prepare("modules", "main")),
        ]) {
          expect(again).toMatchObject({ hash: hashes.abc, kind: blobKinds.module.name, size: 3 });
          expect(textOf(again?.content ?? new Uint8Array())).toBe("abc");
          again?.content.fill(0);
        }
        expect(await rejection(artifacts(database).load("modules", "main"))).toMatchObject({
          code: "CORRUPT_ROW",
        });
        await store.put("modules", "main", bytesOf("two"));
        expect(textOf((await store.load("modules", "main")).content)).toBe("two");
        await store.remove("modules", "main");
        expect(await store.get("modules", "main")).toBeUndefined();
      }));

    test("is kept in memory up to 16 MiB, and those used last stay", () =>
      withDatabase(backend, async (database) => {
        const store = artifacts(database);
        const names = ["a", "b", "c", "d", "e"];
        for (const [index, name] of names.entries()) {
          await store.put("modules", name, new Uint8Array(4_194_304).fill(index + 1));
          await store.load("modules", name);
          await store.load("modules", "a");
        }
        await database.write("damage", () =>
          run(sql`UPDATE holdfast_blob SET content = ${bytesOf("abd")}`),
        );
        const outcomes = names.map(async (name) =>
          store.load("modules", name).then(
            () => "kept",
            () => "gone",
          ),
        );
        expect(await Promise.all(outcomes)).toEqual(["kept", "gone", "kept", "kept", "kept"]);
      }));

    test("[A54] is an error when it points to nothing", () =>
      withDatabase(backend, async (database) => {
        const store = artifacts(database);
        await store.put("modules", "main", bytesOf("abc"));
        await database.write("damage", () => run(sql`DELETE FROM holdfast_blob`));
        expect(await rejection(store.get("modules", "main"))).toMatchObject({
          code: "CORRUPT_ROW",
          details: { table: "holdfast_artifact", key: "modules/main" },
        });
      }));

    test("is passed over and named in a list", () =>
      withDatabase(backend, async (database) => {
        const clock = manualClock(5);
        const store = artifacts(database, { clock });
        await store.put("modules", "a", bytesOf("one"));
        await store.put("modules", "b", bytesOf("two"));
        await database.write("damage", () =>
          run(sql`
            UPDATE holdfast_artifact SET blob = ${"nonsense"} WHERE name = ${"a"}`),
        );
        expect(await store.list("modules")).toEqual({
          items: [{ name: "b", hash: hashes.two, putAt: 5 }],
          damaged: [{ table: "holdfast_artifact", key: "modules/a" }],
          next: undefined,
        });
      }));
  });

  describe("an artifact", () => {
    artifactTests(backend);
  });
}

function artifactTests(backend: Backend): void {
  test("that is not there is undefined, and an error where it must be", () =>
    withDatabase(backend, async (database) => {
      const store = artifacts(database);
      expect(await store.get("modules", "main")).toBeUndefined();
      expect(await rejection(store.load("modules", "main"))).toMatchObject({
        code: "ARTIFACT_NOT_FOUND",
        details: { namespace: "modules", name: "main" },
      });
      expect(await store.remove("modules", "main")).toBe(false);
    }));

  test("with a bad name is refused and changes nothing", () =>
    withDatabase(backend, async (database) => {
      const store = artifacts(database);
      for (const [namespace, name] of [
        ["", "a"],
        ["a", ""],
        ["a", "b\0"],
        ["a", "\ud800"],
        ["a", "x".repeat(513)],
      ] as const)
        expect(await rejection(store.put(namespace, name, bytesOf("abc")))).toMatchObject({
          code: "NAME_INVALID",
        });
      expect(await rejection(store.list("modules", { limit: 1_001 }))).toMatchObject({
        code: "OPTION_INVALID",
      });
      expect(await dump(database)).toMatchObject({ blobs: [], artifacts: [] });
    }));

  test("is blob and pointer together, or neither", () =>
    withDatabase(backend, async (database) => {
      await database.write("break", () => run(sql`DROP TABLE holdfast_artifact`));
      await rejection(artifacts(database).put("a", "b", bytesOf("abc")));
      await database.write("mend", () =>
        run(sql`CREATE TABLE holdfast_artifact (namespace TEXT, name TEXT)`),
      );
      expect(await dump(database)).toMatchObject({ blobs: [] });
      await database.close(); // It is broken: no other test may have it.
    }));

  test("[A54] round-trips verified, and survives closing and opening", () =>
    withPlace(backend, async (place) => {
      const first = await place.open();
      const store = artifacts(first);
      const kind = blobKinds.processEnvironment;
      const environment = bytesOf('{"plugins":[]}'.repeat(400));
      await store.put("modules", "main", bytesOf("abc"));
      await store.put("environments", "main", environment, { kind });
      let again = store;
      if (backend.survives) {
        await first.close();
        again = artifacts(await place.open());
      }
      expect(textOf((await again.load("modules", "main")).content)).toBe("abc");
      expect(await again.get("environments", "main")).toMatchObject({
        kind: "process-environment",
        size: 5_600,
        content: environment,
      });
    }));

  test("belongs to its namespace, and its name may point elsewhere later", () =>
    withDatabase(backend, async (database) => {
      const store = artifacts(database);
      await store.put("a", "x", bytesOf("one"));
      await store.put("b", "x", bytesOf("two"));
      await store.put("a", "x", bytesOf("three"));
      expect((await store.load("a", "x")).hash).toBe(hashes.three);
      expect((await store.load("b", "x")).hash).toBe(hashes.two);
      expect(await store.remove("a", "x")).toBe(true);
      expect(await store.get("a", "x")).toBeUndefined();
      expect((await store.load("b", "x")).hash).toBe(hashes.two);
    }));

  test("is listed in the order of names, page by page", () =>
    withDatabase(backend, async (database) => {
      const store = artifacts(database);
      for (const name of ["c", "a", "b"]) await store.put("modules", name, bytesOf("abc"));
      await store.put("others", "0", bytesOf("abc"));
      const page = await store.list("modules", { limit: 2 });
      expect(page.items.map(({ name }) => name)).toEqual(["a", "b"]);
      const { next = "" } = page;
      const rest = await store.list("modules", { limit: 2, after: next });
      expect(rest.items.map(({ name }) => name)).toEqual(["c"]);
      expect(rest.next).toBeUndefined();
    }));
}
