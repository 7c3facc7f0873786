import { operation, row } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import type { Database } from "../../src/sql/database.ts";
import { sessions } from "../../src/stores/session/sessions.ts";
import { onServer } from "../executions/on-server.ts";
import { compared } from "../scratch.ts";
import { commitAll, conversationsIn } from "./load.ts";
import { size } from "../sizes.ts";

const callers = size(200, 4);
const each = size(5, 1);
const rounds = size(3, 1);

/** What a turn commit of the load takes. */
const statementsPerCommit = 16;

/** The way to the server and back for each statement of a commit, and nothing else. */
const roundTrips = operation("roundTrips", {
  isolation: "readCommitted",
  key: (input: { readonly name: string }) => input.name,
  *one() {
    for (let count = 0; count < statementsPerCommit; count += 1) yield* row(sql`SELECT 1 AS n`);
  },
});

/** Turn commits of many sessions at once against as many empty statements, on the same pool of one server. */
export async function postgres(): Promise<object> {
  const values: number[] = [];
  const ceilings: number[] = [];
  for (let round = 0; round < rounds; round += 1)
    await onServer(async (database) => {
      const conversations = await conversationsIn(database, callers, each);
      values.push(await commitAll(sessions(database), conversations));
      ceilings.push(await tripAll(database));
    });
  return {
    ...compared(values, ceilings),
    unit: "commits/s",
    note: "ceiling is a transaction of as many statements that do nothing; there is no set form",
  };
}

async function tripAll(database: Database): Promise<number> {
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let count = 0; count < each; count += 1)
        await database.write(roundTrips, { name: `caller-${caller}` });
    }),
  );
  return (callers * each * 1_000) / (performance.now() - startedMs);
}
