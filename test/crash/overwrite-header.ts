import { openSync, writeSync } from "node:fs";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * Damages a database from outside, as a program that mistook the file would.
 * A commit first, so that others who have it open read its first page again.
 */
const path = process.argv[2] ?? "";
const connection = loadDriver(driverName).open(path, { readOnly: false });
connection.exec("INSERT INTO app_note (id, half, body) VALUES ('vandal', 1, NULL)");
const file = openSync(path, "r+");
writeSync(file, Buffer.alloc(4_096, "not a database "), 0, 4_096, 0);
process.exit(0);
