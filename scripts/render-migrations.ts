import { createHash } from "node:crypto";

/** One folder `NNNN_name` of src/sql/migrations/ with its two texts. */
export interface MigrationFolder {
  readonly folder: string;
  readonly sqlite: string;
  readonly postgres: string;
}

export interface Checksums {
  readonly sqlite: string;
  readonly postgres: string;
}

/** Databases remember these, so a released text is never edited again. */
export function migrationChecksums(migration: MigrationFolder): Checksums {
  return {
    sqlite: sha256(migration.sqlite),
    postgres: sha256(migration.postgres),
  };
}

/** The text of src/sql/migrations.generated.ts: the same for the same folders. */
export function renderMigrations(folders: readonly MigrationFolder[]): string {
  const entries = folders.toSorted((a, b) => (a.folder < b.folder ? -1 : 1)).map(renderEntry);
  return [
    "// Written by `npm run migrations` from src/sql/migrations/. Do not edit.",
    'import type { Migration } from "./migrations.ts";',
    "",
    "export const migrations: readonly Migration[] = [",
    ...entries,
    "];",
    "",
  ].join("\n");
}

function renderEntry(migration: MigrationFolder): string {
  const [number, ...name] = migration.folder.split("_");
  const checksum = migrationChecksums(migration);
  return `  {
    number: ${Number(number)},
    name: ${JSON.stringify(name.join("_"))},
    sqlite: ${JSON.stringify(migration.sqlite)},
    postgres: ${JSON.stringify(migration.postgres)},
    checksum: {
      sqlite: ${JSON.stringify(checksum.sqlite)},
      postgres: ${JSON.stringify(checksum.postgres)},
    },
  },`;
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}
