import type { Database } from "../../src/sql/database.ts";
import { operation } from "../../src/sql/operation.ts";
import { appendEvents } from "../../test/fixtures/execution-operations.ts";
import {
  finished,
  holder,
  idOf,
  lockedEvent,
  makeExecution,
  newExecutionOf,
} from "../../test/fixtures/execution-parts.ts";
import { compared } from "../scratch.ts";
import { onServer } from "./on-server.ts";
import { size } from "../sizes.ts";

const children = size(1_000, 10);
const rounds = size(3, 1);

const appendAlone: typeof appendEvents = operation("appendAlone", {
  isolation: "readCommitted",
  key: appendEvents.key,
  one: appendEvents.one,
});

/** Many children of one parent end at once, on Postgres: the parent is where they meet. */
export function endings(): Promise<object> {
  return onServer(async (database) => {
    const values: number[] = [];
    const ceilings: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      values.push(await endAll(database, `sets-${round}`, appendEvents));
      ceilings.push(await endAll(database, `alone-${round}`, appendAlone));
    }
    return {
      ...compared(values, ceilings),
      note: "ceiling is one transaction per end",
    };
  });
}

async function endAll(
  database: Database,
  parent: string,
  form: typeof appendEvents,
): Promise<number> {
  const ids = Array.from({ length: children }, (_, index) => `${parent}.n:all_${index + 1}`);
  await database.write("family", function* () {
    for (const id of [parent, ...ids]) yield* makeExecution(newExecutionOf(id), [lockedEvent()]);
  });
  const startedMs = performance.now();
  await Promise.all(
    ids.map((id) =>
      database.write(form, {
        id: idOf(id),
        version: 2,
        at: Date.now(),
        events: [finished()],
        fence: holder,
      }),
    ),
  );
  return (children * 1_000) / (performance.now() - startedMs);
}
