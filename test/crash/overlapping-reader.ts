import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { isBusy } from "../../src/backends/sqlite/write/failures.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * Reads snapshot after snapshot, each some milliseconds old, until told to
 * stop. Says when it has the first one, and in the end how many there were,
 * and how often somebody was in the way.
 */
const connection = loadDriver(driverName).open(process.argv[2] ?? "", {
  readOnly: true,
});
let stopped = false;
process.stdin.on("data", () => (stopped = true));

let snapshots = 0;
let busy = 0;
while (!stopped) {
  connection.exec("BEGIN");
  try {
    connection.prepare("SELECT count(*) FROM sqlite_schema").all();
    snapshots += 1;
    if (snapshots === 1) process.stdout.write("reading\n");
  } catch (error) {
    // Another process is in the way; the next round will do.
    if (!isBusy(error)) throw error;
    busy += 1;
  }
  await new Promise((resolve) => setTimeout(resolve, 10));
  connection.exec("ROLLBACK");
}
connection.close();
process.stdout.write(`${JSON.stringify({ snapshots, busy })}\n`);
process.exit(0);
