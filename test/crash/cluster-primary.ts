import cluster from "node:cluster";
import { openSqlite } from "../../src/sqlite.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * A cluster whose workers share a database. The first worker kills itself
 * once both are there; the second says that it heard of the death.
 */
const [path = ""] = process.argv.slice(2);
if (cluster.isPrimary) {
  const first = cluster.fork();
  const second = cluster.fork();
  let ready = 0;
  for (const worker of [first, second])
    worker.on("message", (message: { ready?: string; death?: string }) => {
      if (message.ready !== undefined) ready += 1;
      if (message.ready !== undefined && ready === 2)
        process.kill(first.process.pid ?? Number.NaN, "SIGKILL");
      if (message.death !== undefined) {
        process.stdout.write("heard of the death\n");
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
