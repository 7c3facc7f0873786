import { syncBuiltinESMExports } from "node:module";
import fs from "node:fs";
import { driverName } from "../sqlite/place.ts";

/**
 * A process that deletes a session's file. It kills itself between the
 * tombstone and the moment the file loses its name, or when the name is gone
 * and the file is not, if it is told to.
 */
const [root = "", when = "never"] = process.argv.slice(2);

const { renameSync } = fs;
fs.renameSync = (from, to) => {
  const isHere = String(to).endsWith("-going");
  if (isHere && when === "before") process.kill(process.pid, "SIGKILL");
  renameSync(from, to);
  if (isHere && when === "after") process.kill(process.pid, "SIGKILL");
};
syncBuiltinESMExports();

const { sessionFiles } = await import("../../src/sqlite.ts");
const files = sessionFiles(root, { sqlite: { driver: driverName } });
const isDeleted = await files.delete("s");
process.stdout.write(`${String(isDeleted)}\n`);
