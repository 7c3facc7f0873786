import { openHoldfast } from "../../src/index.ts";
import type { SqliteDatabase } from "../../src/sqlite.ts";
import type { DriverName } from "../../src/backends/sqlite/drivers/drivers.ts";

/**
 * An app that replaced `process.emitWarning` opens a file twice, uses the threads and the helper
 * process, and prints all warnings that it received.
 */
const [path = "", driver] = process.argv.slice(2);
const emitted: unknown[] = [];
const events: unknown[] = [];
const own = (warning: string | Error): void => void emitted.push(String(warning));
process.emitWarning = own;
process.on("warning", (warning) => emitted.push(warning.message));
const options = {
  sqlite: driver === undefined ? {} : { driver: driver as DriverName },
  onEvent: ({ level, message, details }: { level: string; message: string; details: object }) => {
    if (level === "warn") events.push({ message, details });
  },
};
for (const copy of ["first", "second"]) {
  const holdfast = await openHoldfast(path, options);
  await holdfast.executions.create({ function: "greet" });
  const database = holdfast.database as SqliteDatabase;
  await database.check();
  await database.backup(`${path}.${copy}`);
  await holdfast.close();
}
const isOwnKept = process.emitWarning === own;
process.emitWarning("The app is an experimental feature", "ExperimentalWarning");
console.log(JSON.stringify({ events, emitted, isOwnKept }));
