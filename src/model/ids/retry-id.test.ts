import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { executionIdFault } from "./execution-id.ts";
import { retryId } from "./retry-id.ts";

const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex");
const idOf = (source: string): string => retryId(source, sha256Hex);

test.each([
  ["order-42", "retry:order-42"],
  ["nightly@2026-11-18T02:00:00Z", "retry:nightly@2026-11-18T02:00:00Z"],
  ["retry:order-42", "retry:2@order-42"],
  ["retry:2@order-42", "retry:3@order-42"],
  ["retry:9@order-42", "retry:10@order-42"],
  // Not what we would have written, so they are names like others.
  ["retry:1@order-42", "retry:2@1@order-42"],
  ["retry:02@order-42", "retry:2@02@order-42"],
  ["retry:retry:order-42", "retry:2@retry:order-42"],
  ["x".repeat(122), `retry:${"x".repeat(122)}`],
])("a run %s is tried again as %s", (source, id) => {
  expect(idOf(source)).toBe(id);
});

test("what is too long, or looks like a copy and is none, has its hash in the id", () => {
  for (const source of [
    "x".repeat(123),
    `retry:${"x".repeat(121)}`,
    "2@order-42",
    `sha256@${sha256Hex("x".repeat(123))}`,
  ])
    expect(idOf(source)).toBe(`retry:sha256@${sha256Hex(source)}`);
});

test("ids can be used, do not grow, and are those of one run alone", () => {
  const text = fc.oneof(
    fc.constantFrom("a", "2@", "1@", "10@", "02@", "retry:", "sha256@", ":"),
    fc.constant("x".repeat(100)),
  );
  const source = fc
    .array(text, { minLength: 1, maxLength: 8 })
    .map((parts) => parts.join("").slice(0, 128));
  fc.assert(
    fc.property(fc.uniqueArray(source, { maxLength: 40 }), (sources) => {
      const ids = sources.map(idOf);
      expect(new Set(ids).size).toBe(sources.length);
      expect(ids.map(executionIdFault).filter(Boolean)).toEqual([]);
    }),
  );
  let id = "order-42";
  for (let round = 0; round < 1_000; round += 1) id = idOf(id);
  expect(id).toBe("retry:1000@order-42");
});
