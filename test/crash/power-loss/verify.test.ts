import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { CrashImage } from "./images.ts";
import { openConnection, verifyImage, withImage } from "./verify.ts";

function imageOf(database: Buffer | undefined): CrashImage {
  const files: CrashImage["files"] = new Map(database === undefined ? [] : [["", database]]);
  return { crashPoint: 0, mode: "kept", files };
}

describe("verifying an image", () => {
  test("finds nothing wrong with an empty disk", async () => {
    const tables = await verifyImage(imageOf(undefined), (connection) =>
      connection.prepare("SELECT name FROM sqlite_master").all().map(String),
    );
    expect(tables).toEqual([]);
  });

  test("reports a file that is not a database", async () => {
    const problems = await verifyImage(imageOf(Buffer.alloc(8192, "x")), () => []);
    expect(problems).toEqual(["cannot be read: file is not a database"]);
  });

  test("reports a damaged page", async () => {
    const database = Buffer.from(await pagesOfDatabase());
    database.fill(0xff, 4096, 4196);
    const problems = await verifyImage(imageOf(database), () => []);
    expect(problems.join()).toMatch(/malformed|btreeInitPage|Tree/);
  });

  test("reports what the caller misses", async () => {
    const problems = await verifyImage(imageOf(await pagesOfDatabase()), () => ["lost: call 7"]);
    expect(problems).toEqual(["lost: call 7"]);
  });
});

/** A database of a few pages. */
async function pagesOfDatabase(): Promise<Buffer> {
  let pages = Buffer.alloc(0);
  const problems = await withImage(imageOf(undefined), (path) => {
    const connection = openConnection(path);
    connection.exec("CREATE TABLE t (x TEXT); INSERT INTO t VALUES ('one')");
    connection.close();
    pages = readFileSync(path);
    return [];
  });
  expect(problems).toEqual([]);
  return pages;
}
