import { openSqlite } from "../../src/sqlite.ts";
import type { Database } from "../../src/kernel.ts";
import type { Backend } from "../conformance/backend.ts";
import { driverName } from "../sqlite/place.ts";

export const sqliteMemory: Backend = {
  name: `SQLite in memory (${driverName})`,
  survives: false,
  place() {
    const opened: Database[] = [];
    return Promise.resolve({
      async open({ clock, queueCalls } = {}) {
        const database = await openSqlite(":memory:", {
          driver: driverName,
          ...(clock && { clock }),
          ...(queueCalls !== undefined && { queueCallsMax: queueCalls }),
        });
        opened.push(database);
        return database;
      },
      shell: () => Promise.reject(new Error("Nobody else can open a database in memory.")),
      dispose: async () => void (await Promise.all(opened.map((database) => database.close()))),
    });
  },
};
