import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rows, run, sql, type Database } from "../../../src/kernel.ts";
import { attachmentFiles } from "../../../src/sqlite.ts";
import { attachmentsInDatabase } from "../../../src/sessions.ts";
import type { ByteStore } from "../../../src/sessions.ts";
import type { Backend } from "../backend.ts";

/** One way to keep bytes, for the suites that every one has to pass. */
export interface ByteStoreKind {
  readonly name: string;
  isDurable(backend: Backend): boolean;
  /** Runs a body with a place for bytes; `left` names the files in it. */
  run(
    body: (
      bytesOn: (database: Database) => ByteStore,
      left: () => readonly string[],
    ) => Promise<void>,
  ): Promise<void>;
  /** Changes the bytes of every copy past Holdfast, or takes them away. */
  damage(database: Database, content: Uint8Array | undefined): Promise<void>;
}

const inDatabase: ByteStoreKind = {
  name: "the database",
  isDurable: ({ survives }) => survives,
  run: (body) =>
    body(
      (database) => attachmentsInDatabase(database),
      () => [],
    ),
  async damage(database, content) {
    await database.write("damage", () =>
      run(
        content === undefined
          ? sql`DELETE FROM holdfast_attachment_bytes`
          : sql`UPDATE holdfast_attachment_bytes SET content = ${content}`,
      ),
    );
  },
};

/** Attachments below a folder, by their path in it. */
export function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => name.startsWith("sha256/"))
    .filter((name) => statSync(join(folder, name)).isFile())
    .toSorted();
}

let current = "";

const inFiles: ByteStoreKind = {
  name: "files",
  isDurable: () => true,
  async run(body) {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-files-"));
    current = folder;
    try {
      const bytes = attachmentFiles(folder);
      await body(
        () => bytes,
        () => filesIn(folder),
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  async damage(database, content) {
    const found = await database.read("names", () =>
      rows<{ name: string }>(sql`SELECT name FROM holdfast_attachment_copy`),
    );
    for (const { name } of found) {
      const path = join(current, "sha256", name.slice(0, 2), name);
      if (content === undefined) rmSync(path);
      else writeFileSync(path, content);
    }
  },
};

export const byteStoreKinds: readonly ByteStoreKind[] = [inDatabase, inFiles];
