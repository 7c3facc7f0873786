import cluster from "node:cluster";
import { openSqlite } from "../../src/sqlite.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * A cluster whose workers share a database. The first worker kills itself
 * once both are there; the second says whose death it heard of.
 */
const [path = ""] = process.argv.slice(2);
if (cluster.isPrimary) {
  const first = cluster.fork();
  const second = cluster.fork();
  const owners = new Map<unknown, string>();
  for (const worker of [first, second])
    worker.on("message", (message: { ready?: string; death?: string }) => {
      if (message.ready !== undefined) owners.set(worker, message.ready);
      if (message.ready !== undefined && owners.size === 2)
        process.kill(first.process.pid ?? Number.NaN, "SIGKILL");
      if (message.death !== undefined) {
        process.stdout.write(
          message.death === owners.get(first)
            ? "heard of the death\n"
            : `took ${message.death} for dead\n`,
        );
        process.kill(second.process.pid ?? Number.NaN, "SIGKILL");
        process.exit(0);
      }
    });
} else {
  const database = await openSqlite(path, { driver: driverName });
  database.subscribe((hint) => {
    if (hint.kind === "death") process.send?.({ death: hint.owner });
  });
  process.send?.({ ready: database.owner });
}
