import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { projectRoot } from "./project.ts";
import { renderMigrations } from "./render-migrations.ts";

/** Embeds the SQL files, so that the package reads no files at run time. */
const source = path.join(projectRoot, "src/sql/migrations");
const folders = readdirSync(source, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => ({
    folder: entry.name,
    sqlite: readFileSync(path.join(source, entry.name, "sqlite.sql"), "utf8"),
    postgres: readFileSync(path.join(source, entry.name, "postgres.sql"), "utf8"),
  }));
writeFileSync(path.join(projectRoot, "src/sql/migrations.generated.ts"), renderMigrations(folders));
console.log(`Embedded ${folders.length} migrations.`);
