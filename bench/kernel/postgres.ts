import { operation } from "../../src/sql/operation.ts";
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
const appendAlone = operation("appendAlone", {
  isolation: "readCommitted",
  key: (input: AppendEntry) => String(input.head),
  one: appendEntry.one,
});

/** Set form against one transaction per operation, on the same pool of one server. */
export function postgres(): Promise<object> {
  return onServer(async (database) => {
    const heads = await prepareHeads(database, callers);
    const values: number[] = [];
    const ceilings: number[] = [];
    let version = 0;
    const measure = async (
      each: number,
      form: typeof appendEntry,
    ): Promise<number> => {
      const perSecond = await appendLoad(database, heads, each, version, form);
      version += each;
      return perSecond;
    };
    for (let round = 0; round < rounds; round += 1) {
      values.push(await measure(eachInSets, appendEntry));
      ceilings.push(await measure(eachAlone, appendAlone));
    }
    return {
      ...compared(values, ceilings),
      batchSize: database.stats().batchSize,
      note: "ceiling is one transaction per operation",
    };
  });
}
