import type { DriverName } from "../../src/backends/sqlite/drivers/drivers.ts";
import { openSqlite } from "../../src/sqlite.ts";

/** Opens a file and prints the code of the error, for tests of permissions. */
const [path = "", driver, access] = process.argv.slice(2);
try {
  const database = await openSqlite(path, {
    driver: driver as DriverName,
    readOnly: access === "readOnly",
  });
  await database.close();
  console.log("opened");
} catch (error) {
  console.log((error as { code?: string }).code, (error as Error).message);
}
