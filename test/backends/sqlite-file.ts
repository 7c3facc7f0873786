import type { Backend } from "../conformance/backend.ts";
import { Folder, driverName } from "../sqlite/place.ts";

export const sqliteFile: Backend = {
  name: `a SQLite file (${driverName})`,
  survives: true,
  place() {
    const folder = new Folder();
    return Promise.resolve({
      open: ({ clock, queueCalls } = {}) =>
        folder.open({
          ...(clock && { clock }),
          ...(queueCalls !== undefined && { queueCallsMax: queueCalls }),
        }),
      shell: (...statements) => Promise.resolve(folder.shell(statements)),
      dispose: () => folder.dispose(),
    });
  },
};
