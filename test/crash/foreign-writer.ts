import { loadDriver } from "../../src/backends/sqlite/drivers.ts";
import { driverName } from "../sqlite/place.ts";

/** Commits one row as a database shell would, and says so. */
const connection = loadDriver(driverName).open(process.argv[2] ?? "", {
  readOnly: false,
});
connection.exec("PRAGMA busy_timeout = 30000");
connection.exec(
  "INSERT INTO app_note (id, half, body) VALUES ('foreign', 1, NULL)",
);
process.stdout.write("committed\n");
connection.close();
