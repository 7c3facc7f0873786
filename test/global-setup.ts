import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { removeSpares } from "./postgres/spare-schemas.ts";

const urlVariable = "HOLDFAST_TEST_POSTGRES_URL";
const sparesVariable = "HOLDFAST_TEST_SPARES";

/**
 * Gives the `postgres` project its server: the one named by
 * HOLDFAST_TEST_POSTGRES_URL, or a fresh one for this run. Vitest calls this
 * only when a file of that project is going to run.
 * @returns the way to stop the server it started.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const spares = `spare_${randomBytes(6).toString("hex")}_`;
  process.env[sparesVariable] = spares;
  const given = process.env[urlVariable];
  if (given !== undefined) return () => removeSpares(given, spares);
  const server = spawn(
    process.execPath,
    ["--import", "tsx", fileURLToPath(new URL("postgres/embedded-server.ts", import.meta.url))],
    // Detached, so that an interrupt from the terminal does not reach the
    // server before the tests that use it: it ends when its input does.
    { stdio: ["pipe", "pipe", "inherit"], detached: true },
  );
  process.env[urlVariable] = await firstLine(server);
  return async () => {
    delete process.env[urlVariable];
    server.stdin.end();
    await once(server, "exit");
  };
}

async function firstLine(server: ChildProcess): Promise<string> {
  if (server.stdout === null) throw new Error("The server has no output.");
  for await (const line of createInterface({ input: server.stdout })) {
    return line;
  }
  throw new Error(
    "The Postgres server did not start; its log is above. " +
      `Set ${urlVariable} to use a server of your own.`,
  );
}
