import { expect, test } from "vitest";
import { hasSqlite } from "../../scripts/node-with-sqlite.ts";

test.each([
  ["20.20.2", false],
  ["22.12.0", false],
  ["22.13.0", true],
  ["24.0.0", true],
  ["26.1.0", true],
])("Node %s has node:sqlite: %s", (version, expected) => {
  expect(hasSqlite(version)).toBe(expected);
});
