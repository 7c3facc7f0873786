import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Place } from "./place.ts";

/** A server for tests that make the whole of it fail, so that no other test is hurt. */
export async function withOwnServer(
  body: (place: Place) => Promise<void>,
  { connectionsMax = 200 }: { readonly connectionsMax?: number } = {},
): Promise<void> {
  const server = spawn(
    process.execPath,
    [
      "--import",
      "tsx",
      fileURLToPath(new URL("embedded-server.ts", import.meta.url)),
      String(connectionsMax),
    ],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  try {
    const [url] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
    const place = new Place(url);
    try {
      await body(place);
    } finally {
      await place.dispose();
    }
  } finally {
    server.stdin.end();
    if (server.exitCode === null) await once(server, "exit");
  }
}
