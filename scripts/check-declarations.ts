import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { inferringModules } from "./inferring-modules.ts";
import { projectRoot } from "./project.ts";

/**
 * Checks the built package from outside: a user who has declarations made of
 * his own code may export what a method answers without writing its type down.
 * TypeScript refuses (TS2883, TS4023) where no door hands the type out.
 */
const home = mkdtempSync(path.join(tmpdir(), "holdfast-declarations-"));
try {
  install();
  const waiting = [...(await inferringModules())];
  // Each alone: doors that another module imports would be known to all.
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await declare(...next);
  };
  await Promise.all([work(), work()]);
} finally {
  rmSync(home, { recursive: true });
}

function install(): void {
  const installed = path.join(home, "node_modules/holdfast");
  cpSync(path.join(projectRoot, "dist"), path.join(installed, "dist"), {
    recursive: true,
    filter: (file) => !/\.(js|map)$/.test(file),
  });
  cpSync(path.join(projectRoot, "package.json"), path.join(installed, "package.json"));
  for (const other of ["@types", "undici-types", "postgres"])
    symlinkSync(
      path.join(projectRoot, "node_modules", other),
      path.join(home, "node_modules", other),
      "junction",
    );
}

async function declare(module: string, text: string): Promise<void> {
  const file = path.join(home, `${module}.mts`);
  writeFileSync(file, text);
  const options =
    "--declaration --emitDeclarationOnly --strict --target es2022 --module nodenext --types node --skipLibCheck";
  const compiler = spawn(
    process.execPath,
    [path.join(projectRoot, "node_modules/typescript/bin/tsc"), ...options.split(" "), file],
    { cwd: home, stdio: ["ignore", "inherit", "inherit"] },
  );
  const [code] = (await once(compiler, "close")) as [number | null];
  if (code === 0 && existsSync(path.join(home, `${module}.d.mts`))) return;
  console.error(
    `What "${module}" answers cannot be exported by inference: let a door hand out the types named above, write them where they are answered, or let the door load (\`export type {} from …\`) the one that has them.`,
  );
  process.exitCode = 1;
}
