import { writeSync } from "node:fs";
import { moveToPostgres } from "../../src/open/move/move-to-postgres.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * Moves a file, and is killed by itself at a table of a phase, `copying 7`, or
 * when everything has `arrived`. Without that it reports the end.
 */
const [path = "", url = "", schema = "", phase = "", number = ""] = process.argv.slice(2);

const { released } = await moveToPostgres(path, url, {
  sqlite: { driver: driverName },
  postgres: { schema },
  onProgress(progress) {
    const isHere =
      progress.phase === phase &&
      (progress.phase === "arrived" || progress.number === Number(number));
    if (!isHere) return;
    writeSync(1, "here\n");
    process.kill(process.pid, "SIGKILL");
  },
});
console.log(`moved ${released}`);
