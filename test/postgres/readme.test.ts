import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { text as textFrom } from "node:stream/consumers";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.ts";
import { executions } from "../../src/executions.ts";
import { nodeWithSqlite } from "../../scripts/node-with-sqlite.ts";
import { packed } from "../../scripts/pack.ts";

const root = path.join(import.meta.dirname, "../..");
const readme = readFileSync(path.join(root, "README.md"), "utf8");
const { name, version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
  name: string;
  version: string;
};

/**
 * A newcomer's folder: the packed tarball is unpacked where npm would put it,
 * and what it depends on is linked from our own node_modules, so that no test
 * needs the registry. Everything else is as `npm install` leaves it.
 */
const home = mkdtempSync(path.join(tmpdir(), "holdfast-readme-"));
const installed = path.join(home, "node_modules", name);

beforeAll(() => {
  const tarball = packed(home);
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", tarball, "-C", installed, "--strip=1"]);
  for (const left of ["source", "tarball"]) rmSync(path.join(home, left), { recursive: true });
  for (const other of ["commander", "croner", "better-sqlite3", "tsx"]) link(other);
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

function link(other: string): void {
  const place = path.join(home, "node_modules", other);
  mkdirSync(path.dirname(place), { recursive: true });
  symlinkSync(path.join(root, "node_modules", other), place, "junction");
}

function node(args: readonly string[], { cwd = home, binary = process.execPath } = {}): string {
  return execFileSync(binary, args, { cwd, encoding: "utf8", stdio: "pipe" });
}

/** README's first TypeScript block, word for word. */
function snippet(): string {
  const [, code] = /^```ts\n([^]*?)^```$/m.exec(readme) ?? [];
  if (code === undefined) throw new Error("README.md has no example.");
  return code;
}

/** The same as README says it is for Postgres. */
function onPostgres(url: string): string {
  expect(readme).toContain("give `openHoldfast` a `postgres://…` URL");
  return snippet().replace("./orders.db", url);
}

async function untilItSleeps(place: string): Promise<void> {
  const database = await openSqlite(place);
  const log = executions(database);
  const sleeps = async (): Promise<boolean> => {
    const { items } = await log.events("order-42");
    return items.some(({ event }) => event.kind === "delayRequested");
  };
  while (!(await sleeps())) await new Promise((resolve) => setTimeout(resolve, 10));
  await database.close();
}

const charged = "charging 500 cents, attempt 1\n";
const result = "{ receipt: 'receipt-500', label: 'label of order-42', approved: true }\n";

/** `npx tsx orders.mts`, which is all that Node 20 can. */
const withTsx = (): string => node(["node_modules/tsx/dist/cli.mjs", file]);
/** `node orders.mts` from Node 22.18 on. */
const withNewerNode = (): string => node([file], { binary: nodeWithSqlite() });
/** The better-sqlite3 here is built for this Node, which Holdfast says on another. */
const otherBuild = "--disable-warning=DRIVER_UNUSABLE";

const file = /Save it as `([^`]+)`/.exec(readme)?.[1] ?? "";

const ways = [
  ["npx tsx orders.mts", withTsx],
  ["node orders.mts", withNewerNode],
] as const;

describe("README's example, in an empty folder with the packed package", () => {
  test("has the name and the commands that README says", () => {
    expect(file).toBe("orders.mts");
    for (const [command] of ways) expect(readme).toContain(`\`${command}\``);
    expect(readme).toContain(`/${name}-${version}.tgz`);
  });

  test.each(ways)("runs on SQLite with %s, once and again", (_, run) => {
    writeFileSync(path.join(home, file), snippet());
    try {
      expect(run()).toBe(charged + result);
      expect(run()).toBe(result);
    } finally {
      rmSync(path.join(home, "orders.db"));
    }
    expect(readdirSync(home).toSorted()).toEqual(["node_modules", file]);
  });

  test.each(ways)("runs on Postgres with %s", async (_, run) => {
    const place = new URL(process.env["HOLDFAST_TEST_POSTGRES_URL"] ?? "");
    const admin = postgres(place.href, { max: 1 });
    const own = `readme_${randomBytes(6).toString("hex")}`;
    await admin.unsafe(`CREATE DATABASE ${own}`);
    try {
      place.pathname = own;
      link("postgres");
      writeFileSync(path.join(home, file), onPostgres(place.href));
      expect(run()).toBe(charged + result);
    } finally {
      rmSync(path.join(home, "node_modules/postgres"));
      await admin.unsafe(`DROP DATABASE ${own} WITH (FORCE)`);
      await admin.end();
    }
  });

  test.each([
    ["this Node", "typescript" in process.features ? "app.mts" : "app.mjs", process.execPath],
    ["Node 24", "app.mts", nodeWithSqlite()],
  ])("holdfast init writes a file that %s runs, once and again", (_, written, binary) => {
    const command = path.join(installed, "dist/cli/main.js");
    const project = path.join(home, "my-app");
    try {
      expect(node([command, "init", "my-app"], { binary })).toContain(
        `Wrote ${path.join("my-app", written)}. Next:\n  cd my-app`,
      );
      const app = path.join(project, written);
      // Its sleep is for people, who are to kill it meanwhile.
      const text = readFileSync(app, "utf8");
      expect(text).toContain('"3 seconds"');
      writeFileSync(app, text.replace("3 seconds", "10 ms"));
      const run = (): string => node([written], { cwd: project, binary });
      const own = "{ receipt: 'receipt-500', label: 'label of order-1' }\n";
      expect(run()).toBe(charged + own);
      expect(run()).toBe(own);
    } finally {
      rmSync(project, { recursive: true, force: true });
    }
  });

  // Ctrl-C reaches tsx as well, which may send the program the signal a second time: that ends it at once.
  test.each([
    ["was killed", "SIGKILL", process.execPath, ["node_modules/tsx/dist/cli.mjs", file]],
    ["was ended with Ctrl-C", "SIGINT", nodeWithSqlite(), [otherBuild, file]],
  ] as const)("goes on after it %s while it slept", async (_, signal, binary, args) => {
    writeFileSync(path.join(home, file), snippet());
    const child = spawn(binary, args, { cwd: home, detached: true });
    try {
      // A pipe may hand over one line in several pieces.
      let said = "";
      for await (const part of child.stdout) {
        said += String(part);
        if (said.length >= charged.length) break;
      }
      expect(said).toBe(charged);
      await untilItSleeps(path.join(home, "orders.db"));
      // tsx runs it in a process of its own.
      process.kill(-(child.pid ?? 0), signal);
      const ended = Promise.all([once(child, "exit"), textFrom(child.stderr)]);
      if (signal === "SIGINT") {
        expect((await ended)[1]).toBe("");
        // It was closed: what a killed process leaves beside the file is gone.
        expect(readdirSync(home).filter((left) => left.startsWith("orders.db"))).toEqual([
          "orders.db",
        ]);
      }
      await ended;
      expect(withTsx()).toBe(result);
    } finally {
      for (const left of ["orders.db", "orders.db-wal", "orders.db-shm"])
        rmSync(path.join(home, left), { force: true });
    }
  });

  test("type-checks with its declarations, strictly and without leaving any out", () => {
    for (const other of ["@types/node", "undici-types", "postgres"]) link(other);
    const declarations = readdirSync(path.join(installed, "dist"))
      .filter((door) => door.endsWith(".d.ts"))
      .map((door) => `node_modules/${name}/dist/${door}`);
    writeFileSync(path.join(home, file), snippet());
    const compiler = path.join(root, "node_modules/typescript/bin/tsc");
    const options =
      "--noEmit --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --target es2022 --module nodenext --types node";
    expect(node([compiler, ...options.split(" "), file, ...declarations])).toBe("");
  });
});

test("README's links lead to files of the package", () => {
  const links = [...readme.matchAll(/\]\((?!https:)([^)#]+)/g)].map(([, target = ""]) => target);
  expect(links).toContain("docs/errors.md");
  for (const target of links)
    expect([target, statSync(path.join(installed, target)).size > 0]).toEqual([target, true]);
});
