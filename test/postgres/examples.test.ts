import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import postgres from "postgres";
import { expect, test } from "vitest";
import { compiled } from "../compile-children.ts";

const root = path.join(import.meta.dirname, "../..");

async function withOwnDatabase(body: (url: string) => Promise<void>): Promise<void> {
  const place = new URL(process.env["HOLDFAST_TEST_POSTGRES_URL"] ?? "");
  const admin = postgres(place.href, { max: 1 });
  const own = `example_${randomBytes(6).toString("hex")}`;
  await admin.unsafe(`CREATE DATABASE ${own}`);
  try {
    place.pathname = own;
    await body(place.href);
  } finally {
    await admin.unsafe(`DROP DATABASE ${own} WITH (FORCE)`);
    await admin.end();
  }
}

function outputOn(url: string, name: string): string {
  return execFileSync(process.execPath, [compiled(name, "examples")], {
    encoding: "utf8",
    env: { ...process.env, HOLDFAST_DB: url },
  });
}

/** Those that take their database from `HOLDFAST_DB`. */
test.each(["orders.ts", "file-pipeline.ts"])(
  "%s prints on Postgres what it prints on SQLite",
  (name) =>
    withOwnDatabase(async (url) => {
      const source = readFileSync(path.join(root, "examples", name), "utf8");
      const [, promised = ""] = source.split("\n// Output:\n");
      expect(outputOn(url, name)).toBe(promised.replaceAll(/^\/\/ ?/gm, ""));
    }),
);

test("the SQL of the page on operations finds runs in the schema of Postgres, too", () =>
  withOwnDatabase(async (url) => {
    outputOn(url, "orders.ts");
    const page = readFileSync(path.join(root, "docs/operations.md"), "utf8");
    const [, code = ""] = /^```sql\n([^]*?)^```$/m.exec(page) ?? [];
    const shell = postgres(url, {
      max: 1,
      connection: { search_path: "holdfast" },
    });
    const statements = code.split(";\n").filter((text) => text.trim() !== "");
    const counts: number[] = [];
    for (const statement of statements) counts.push((await shell.unsafe(statement)).length);
    await shell.end();
    // Two orders and two charges; none is interrupted; none is called order-42.
    expect(counts.slice(0, 3)).toEqual([4, 0, 0]);
    expect(counts[3]).toBeGreaterThan(0);
  }));
