import { describe, expect, test } from "vitest";
import { sql } from "../../sql/statement.ts";
import { TemplateTexts, qualified } from "./qualified.ts";

describe("our tables", () => {
  test.each([
    ["SELECT * FROM holdfast_effect", 'SELECT * FROM "s".holdfast_effect'],
    [
      "select * from HOLDFAST_EFFECT e join\n holdfast_session s on s.key = e.session",
      'select * from "s".HOLDFAST_EFFECT e join\n "s".holdfast_session s on s.key = e.session',
    ],
    [
      "INSERT INTO holdfast_blob (hash) VALUES (1) ON CONFLICT (hash) DO UPDATE SET at = 1 WHERE holdfast_blob.at < 2",
      'INSERT INTO "s".holdfast_blob (hash) VALUES (1) ON CONFLICT (hash) DO UPDATE SET at = 1 WHERE holdfast_blob.at < 2',
    ],
    [
      "UPDATE ONLY holdfast_blob SET at = 1 FROM holdfast_effect, holdfast_session s WHERE holdfast_blob . at = s.key",
      'UPDATE ONLY "s".holdfast_blob SET at = 1 FROM "s".holdfast_effect, "s".holdfast_session s WHERE holdfast_blob . at = s.key',
    ],
    [
      "DELETE FROM holdfast_blob USING holdfast_effect WHERE true",
      'DELETE FROM "s".holdfast_blob USING "s".holdfast_effect WHERE true',
    ],
    [
      "SELECT 1 FROM (holdfast_blob CROSS JOIN holdfast_effect), LATERAL (SELECT 1 FROM holdfast_tick) t",
      'SELECT 1 FROM ("s".holdfast_blob CROSS JOIN "s".holdfast_effect), LATERAL (SELECT 1 FROM "s".holdfast_tick) t',
    ],
    [
      "WITH x AS (DELETE FROM holdfast_blob RETURNING hash) INSERT INTO holdfast_tick SELECT hash FROM x, holdfast_effect",
      'WITH x AS (DELETE FROM "s".holdfast_blob RETURNING hash) INSERT INTO "s".holdfast_tick SELECT hash FROM x, "s".holdfast_effect',
    ],
    [
      "CREATE TABLE IF NOT EXISTS visit (s BIGINT REFERENCES holdfast_session (key))",
      'CREATE TABLE IF NOT EXISTS visit (s BIGINT REFERENCES "s".holdfast_session (key))',
    ],
    [
      "CREATE INDEX mine ON holdfast_session (key)",
      'CREATE INDEX mine ON "s".holdfast_session (key)',
    ],
    [
      "SELECT 1 FROM a /* of */ , -- and\n holdfast_blob",
      'SELECT 1 FROM a /* of */ , -- and\n "s".holdfast_blob',
    ],
    [
      "SELECT EXISTS (SELECT 1 FROM f(a, b), holdfast_blob)",
      'SELECT EXISTS (SELECT 1 FROM f(a, b), "s".holdfast_blob)',
    ],
  ])("get their schema: %s", (text, expected) => {
    expect(qualified(text, "s")).toBe(expected);
  });

  test.each([
    "SELECT 'FROM holdfast_blob', E'it\\'s FROM holdfast_blob', $$ FROM holdfast_blob $$",
    'SELECT * FROM "holdfast_blob" -- FROM holdfast_blob',
    "SELECT * FROM other.holdfast_blob, holdfast_blob_of_mine, holdfast_blob.x",
    "SELECT holdfast_blob.hash, holdfast_blob FROM b AS holdfast_blob FOR UPDATE OF holdfast_blob",
    "SELECT 1 FROM a ORDER BY a, holdfast_blob",
    "SELECT a IS DISTINCT FROM holdfast_blob.hash",
  ])("stay as they are elsewhere: %s", (text) => {
    expect(qualified(text, "s")).toBe(text);
  });

  test("are qualified around parameters, for each schema on its own", () => {
    const { template } = sql`
      SELECT ${1} FROM holdfast_blob WHERE hash = ${"h"} AND EXISTS (SELECT 1 FROM holdfast_tick)`;
    const one = new TemplateTexts("one");
    expect([...one.literalOf(template)]).toEqual([
      "\n      SELECT ",
      ' FROM "one".holdfast_blob WHERE hash = ',
      ' AND EXISTS (SELECT 1 FROM "one".holdfast_tick)',
    ]);
    expect(one.literalOf(template)).toBe(one.literalOf(template));
    expect(new TemplateTexts("two").literalOf(template)[1]).toBe(
      ' FROM "two".holdfast_blob WHERE hash = ',
    );
  });
});
