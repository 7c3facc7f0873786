import { migrationChecksums, renderMigrations } from "../../scripts/render-migrations.ts";
import type { MigrationFolder } from "../../scripts/render-migrations.ts";
import { namesIn } from "./schema-names.ts";
import type { Tree } from "./tree.ts";

const home = "src/sql/migrations/";
const generated = "src/sql/migrations.generated.ts";
const frozen = "test/formats/migrations.json";

/** Folders NNNN_name, dense from 1, each with both twins. */
export function migrationNumbers(tree: Tree): readonly string[] {
  const problems: string[] = [];
  migrationFolders(tree).forEach((folder, index) => {
    const expected = String(index + 1).padStart(4, "0");
    if (!/^\d{4}_[a-z0-9_]+$/.test(folder))
      problems.push(
        `${home}${folder}: name it NNNN_words_of_small_letters, such as ${expected}_queue.`,
      );
    else if (!folder.startsWith(expected))
      problems.push(`${home}${folder}: numbers are dense from 1, so this one must be ${expected}.`);
    for (const dialect of ["sqlite", "postgres"])
      if (!tree.has(`${home}${folder}/${dialect}.sql`))
        problems.push(`${home}${folder}/${dialect}.sql is missing: a migration has both twins.`);
  });
  return problems;
}

/** What only SQLite has: Postgres reads a check anew at every statement, so it has none of states. */
const isOfSqlite = /^constraint holdfast_\w+_sound$/;

/** Statements are written once, so both databases must have the same names. */
export function migrationTwins(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const { folder, sqlite, postgres } of completeMigrations(tree)) {
    const twins = [
      { own: namesIn(sqlite), other: namesIn(postgres), file: "postgres.sql" },
      { own: namesIn(postgres), other: namesIn(sqlite), file: "sqlite.sql" },
    ];
    for (const { own, other, file } of twins) {
      for (const name of own)
        if (!other.has(name) && !(file === "postgres.sql" && isOfSqlite.test(name)))
          problems.push(
            `${home}${folder}/${file}: has no ${name}, but its twin does: give both the same names.`,
          );
    }
    for (const name of namesIn(sqlite))
      if (/^(table|index) /.test(name) && !/^\w+ holdfast_/.test(name))
        problems.push(
          `${home}${folder}: ${name} must be named holdfast_…, since we live beside the tables of the app.`,
        );
  }
  return problems;
}

export function embeddedMigrations(tree: Tree): readonly string[] {
  return tree.get(generated) === renderMigrations(completeMigrations(tree))
    ? []
    : [`${generated} is not what the SQL files say: run "npm run migrations".`];
}

/** Users' disks hold released schemas: those texts never change again. */
export function frozenMigrations(tree: Tree): readonly string[] {
  const released = JSON.parse(tree.get(frozen) ?? "null") as Readonly<
    Record<string, unknown>
  > | null;
  if (released === null)
    return [`${frozen} is missing: start it with {} and list what is released.`];
  const current = new Map(
    completeMigrations(tree).map((migration) => [
      String(Number(migration.folder.split("_")[0])),
      JSON.stringify(migrationChecksums(migration)),
    ]),
  );
  return Object.entries(released)
    .filter(([number, sums]) => current.get(number) !== JSON.stringify(sums))
    .map(
      ([number]) =>
        `Migration ${number} is released (${frozen}) and was changed: restore its text and write a new migration.`,
    );
}

function migrationFolders(tree: Tree): readonly string[] {
  const folders = [...tree.keys()]
    .filter((file) => file.startsWith(home))
    .map((file) => file.slice(home.length).split("/")[0] ?? "");
  return [...new Set(folders)].toSorted();
}

function completeMigrations(tree: Tree): readonly MigrationFolder[] {
  return migrationFolders(tree).flatMap((folder) => {
    const sqlite = tree.get(`${home}${folder}/sqlite.sql`);
    const postgres = tree.get(`${home}${folder}/postgres.sql`);
    return sqlite === undefined || postgres === undefined ? [] : [{ folder, sqlite, postgres }];
  });
}
