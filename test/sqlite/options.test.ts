import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { openHoldfast } from "../../src/index.ts";
import { row, sql } from "../../src/kernel.ts";
import { openSqlite } from "../../src/sqlite.ts";
import { rejection } from "../conformance/backend.ts";
import { withFolder } from "./place.ts";

const hostile: readonly unknown[] = [
  null,
  Number.NaN,
  "",
  {},
  [],
  5n,
  Symbol("s"),
  () => undefined,
  -1,
  2 ** 60,
];

/** What an option means among them. */
const isMeant: Readonly<Record<string, (value: unknown) => boolean>> = {
  sqlite: isPlain,
  postgres: isPlain,
  valueLimits: isPlain,
  "sqlite.limits": isPlain,
  onEvent: (value) => typeof value === "function",
  "sqlite.onWarning": (value) => typeof value === "function",
};

function isPlain(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

test.each([
  "sqlite",
  "postgres",
  "payload",
  "valueLimits",
  "onEvent",
  "sqlite.driver",
  "sqlite.durability",
  "sqlite.readOnly",
  "sqlite.clock",
  "sqlite.busyTimeout",
  "sqlite.queueCallsMax",
  "sqlite.limits",
  "sqlite.onWarning",
])("openHoldfast refuses what %s does not mean, and makes no file", (option) =>
  withFolder(async (folder) => {
    const [name = "", inner] = option.split(".");
    for (const value of hostile) {
      if (isMeant[option]?.(value) === true) continue;
      const given = {
        [name]: inner === undefined ? value : { [inner]: value },
      };
      const error = await rejection(openHoldfast(folder.file(), given));
      expect(error.code).toMatch(/^(OPTION|DURATION)_INVALID$/);
      expect(error.message).toContain(inner ?? name);
      expect(readdirSync(folder.path)).toEqual([]);
    }
  }),
);

test("the page cache is as large as limits.cacheBytes says, on the connection that writes and on the one that reads", () =>
  withFolder(async (folder) => {
    const size = () =>
      row<{ readonly kib: number }>(sql`SELECT cache_size AS kib FROM pragma_cache_size`);
    for (const [limits, kib] of [
      [{ cacheBytes: 1_048_577 }, -1_025],
      [{}, -16_384],
    ] as const) {
      const database = await openSqlite(folder.file(), { limits });
      expect(await database.read("size", size)).toEqual({ kib });
      expect(await database.write("size", size)).toEqual({ kib });
      await database.close();
    }
    for (const cacheBytes of [0, -1, 0.5, 2 ** 40 + 1, Number.NaN, "1", null])
      expect(
        await rejection(
          openSqlite(folder.file(), { limits: { cacheBytes: cacheBytes as number } }),
        ),
      ).toMatchObject({ code: "OPTION_INVALID" });
  }));
