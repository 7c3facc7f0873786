import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { isBusy } from "../../src/backends/sqlite/write/failures.ts";
import { driverName } from "../sqlite/place.ts";

/** Commits one row as a database shell would, and says so. */
const connection = loadDriver(driverName).open(process.argv[2] ?? "", {
  readOnly: false,
});
for (let isDone = false; !isDone;) {
  try {
    connection.exec("INSERT INTO app_note (id, half, body) VALUES ('foreign', 1, NULL)");
    isDone = true;
  } catch (error) {
    // Without a pause: SQLite's own wait would hardly ever meet a gap between others' turns.
    if (!isBusy(error)) throw error;
  }
}
process.stdout.write("committed\n");
connection.close();
