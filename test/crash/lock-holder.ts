import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { driverName } from "../sqlite/place.ts";

/** Holds a lock on the file until it is told to let go: a writer's, or a reader's that pins the log. */
const [path = "", kind = "write"] = process.argv.slice(2);
const connection = loadDriver(driverName).open(path, { readOnly: false });
connection.exec(kind === "write" ? "BEGIN IMMEDIATE" : "BEGIN");
connection.prepare("SELECT count(*) FROM sqlite_schema").all();
process.stdout.write("held\n");
process.stdin.once("data", () => {
  connection.exec("COMMIT");
  connection.close();
  process.stdout.write("released\n");
  // A pipe that is still open would keep the process.
  process.stdin.destroy();
});
