import { lockRow } from "../../src/sql/dialect.ts";
import { operation, row, run } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import type { Database } from "../../src/sql/database.ts";
import { appendEntry } from "../../test/fixtures/append-entry.ts";
import type { AppendEntry } from "../../test/fixtures/append-entry.ts";
import { onServer } from "../executions/on-server.ts";
import { compared } from "../scratch.ts";
import { appendLoad, prepareHeads } from "./load.ts";
import { size } from "../sizes.ts";

const callers = size(200, 4);
const eachInSets = size(100, 4);
const eachAlone = size(10, 2);
const rounds = size(3, 1);

/** The same operation without its set form: one transaction each. */
const alone = {
  key: (input: AppendEntry) => String(input.head),
  one: appendEntry.one,
};
const appendAlone = operation("appendAlone", {
  ...alone,
  isolation: "readCommitted",
});
const appendSerializable = operation("appendSerializable", alone);

/** Callers that all read and then change one row. */
const rivals = size(50, 4);
const callsEach = size(10, 2);

/**
 * Set form against one transaction per operation, on the same pool of one
 * server; the same, serializable, against readCommitted; and a row that all
 * change, serializable against locked.
 */
export function postgres(): Promise<object> {
  return onServer(async (database) => {
    const heads = await prepareHeads(database, callers);
    const [sets, ones, serializable, serial, locked]: number[][] = [[], [], [], [], []];
    let version = 0;
    const measure = async (each: number, form: typeof appendEntry): Promise<number> => {
      const perSecond = await appendLoad(database, heads, each, version, form);
      version += each;
      return perSecond;
    };
    for (let round = 0; round < rounds; round += 1) {
      sets?.push(await measure(eachInSets, appendEntry));
      ones?.push(await measure(eachAlone, appendAlone));
      serializable?.push(await measure(eachAlone, appendSerializable));
      serial?.push(await raiseAll(database, "serializable"));
      locked?.push(await raiseAll(database, "readCommitted"));
    }
    return {
      ...compared(sets ?? [], ones ?? []),
      batchSize: database.stats().batchSize,
      note: "ceiling is one transaction per operation",
      serializable: {
        ...compared(serializable ?? [], ones ?? []),
        note: "ceiling is the same, readCommitted",
      },
      oneRow: {
        ...compared(serial ?? [], locked ?? []),
        note: `${rivals} callers read and then change one row; ceiling reads it with lockRow, readCommitted`,
      },
    };
  });
}

async function raiseAll(
  database: Database,
  isolation: "serializable" | "readCommitted",
): Promise<number> {
  const lock = isolation === "readCommitted" ? lockRow : sql``;
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: rivals }, async () => {
      for (let turn = 0; turn < callsEach; turn += 1)
        await database.write(
          "raise",
          function* () {
            const found = yield* row<{ key: number; version: number }>(
              sql`SELECT key, version FROM app_log_head WHERE id = 'bench-0' ${lock}`,
            );
            if (found === undefined) throw new Error("There is a first head.");
            // As it was: the appends of the next round count on it.
            yield* run(
              sql`UPDATE app_log_head SET version = ${found.version} WHERE key = ${found.key}`,
            );
          },
          { isolation },
        );
    }),
  );
  return (rivals * callsEach * 1_000) / (performance.now() - startedMs);
}
