import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { driverName } from "../sqlite/place.ts";

/** Holds a lock on the file for so long: a writer's, or a reader's that pins the log. */
const [path = "", kind = "write", holdMs = "0"] = process.argv.slice(2);
const connection = loadDriver(driverName).open(path, { readOnly: false });
connection.exec(kind === "write" ? "BEGIN IMMEDIATE" : "BEGIN");
connection.prepare("SELECT count(*) FROM sqlite_schema").all();
process.stdout.write("held\n");
setTimeout(() => {
  connection.exec("COMMIT");
  connection.close();
  process.stdout.write("released\n");
}, Number(holdMs));
