import { fork } from "node:child_process";
import { openSqlite } from "../../src/sqlite.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * A process that has the database open and forks itself; the fork opens it
 * too. Whatever a fork inherited would keep the lock of a dead parent alive.
 */
const [path = "", role = "parent"] = process.argv.slice(2);
const database = await openSqlite(path, { driver: driverName });
if (role === "child") {
  process.send?.(database.owner);
  // Outlives its parent.
  process.once("disconnect", () => setTimeout(() => undefined, 600_000));
} else {
  const child = fork(new URL(import.meta.url).pathname, [path, "child"]);
  child.once("message", (childOwner) => {
    process.stdout.write(
      `${JSON.stringify({ owner: database.owner, childOwner, childPid: child.pid })}\n`,
    );
  });
}
