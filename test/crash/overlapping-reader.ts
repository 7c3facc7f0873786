import { loadDriver } from "../../src/backends/sqlite/drivers.ts";
import { driverName } from "../sqlite/place.ts";

/** Reads snapshot after snapshot, each some milliseconds old, until told to stop. */
const connection = loadDriver(driverName).open(process.argv[2] ?? "", {
  readOnly: true,
});
let stopped = false;
process.stdin.on("data", () => (stopped = true));

const attempt = (action: () => void): void => {
  try {
    action();
  } catch {
    // Another process is in the way; the next round will do.
  }
};
while (!stopped) {
  attempt(() => {
    connection.exec("BEGIN");
    connection.prepare("SELECT count(*) FROM sqlite_schema").all();
  });
  await new Promise((resolve) => setTimeout(resolve, 10));
  attempt(() => connection.exec("ROLLBACK"));
}
connection.close();
process.exit(0);
