import { describe, expect, test } from "vitest";
import { rows, run, sql } from "../../src/kernel.ts";
import { rejection } from "../conformance/backend.ts";
import { withFolder } from "../sqlite/place.ts";
import { setUpAtOnce, setUpOnce } from "./set-up-at-once.ts";

const first = {
  name: "0001",
  up: () => run(sql`CREATE TABLE app_goods (id TEXT)`),
};
const second = {
  name: "0002",
  up: () => run(sql`CREATE TABLE app_price (id TEXT)`),
};

describe("setting up on a file", () => {
  test("processes that open a new file at once apply each migration once", () =>
    withFolder(async (folder) => {
      expect(await setUpAtOnce(folder.file())).toEqual(setUpOnce);
      const database = await folder.open();
      expect(await database.read("goods", () => rows(sql`SELECT * FROM app_goods`))).toEqual([
        { id: "hat", n: 1 },
      ]);
    }));

  test("a read-only database that is set up is fine, and one that is not is told", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.setUp("shop", [first]);
      await database.close();
      const reader = await folder.open({ readOnly: true });
      expect(await reader.setUp("shop", [first])).toEqual({ applied: [] });
      expect(await rejection(reader.setUp("shop", [first, second]))).toMatchObject({
        code: "READ_ONLY",
      });
    }));
});
