import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { openPostgres } from "../../src/postgres.ts";
import type { Database } from "../../src/stores/database.ts";
import type { Backend } from "../conformance/backend.ts";

const url = process.env["HOLDFAST_TEST_POSTGRES_URL"] ?? "";

export const postgresSchema: Backend = {
  name: "Postgres",
  survives: true,
  place() {
    const schema = `test_${randomBytes(6).toString("hex")}`;
    const opened: Database[] = [];
    return Promise.resolve({
      async open({ clock, queueCalls, isWithoutPoll } = {}) {
        const database = await openPostgres(url, {
          schema,
          poolSize: 4,
          ...(clock && { clock }),
          ...(queueCalls !== undefined && { queueCallsMax: queueCalls }),
          ...(isWithoutPoll === true && { pollInterval: "20 days" }),
        });
        opened.push(database);
        return database;
      },
      shell: (...statements) => shell(schema, statements),
      async dispose() {
        await Promise.all(opened.map((database) => database.close()));
        await shell(schema, [`DROP SCHEMA "${schema}" CASCADE`]);
      },
    });
  },
};

/** Another client, with the schema first on its path, as an app would have it. */
async function shell(
  schema: string,
  statements: readonly string[],
): Promise<readonly object[]> {
  const client = postgres(url, {
    max: 1,
    onnotice: () => undefined,
    connection: { search_path: schema },
    types: { bigint: { to: 20, from: [20], serialize: String, parse: Number } },
  });
  try {
    await client.unsafe(`CREATE SCHEMA IF NOT EXISTS "${schema}"`);
    let answer: readonly object[] = [];
    for (const statement of statements)
      answer = [...(await client.unsafe(statement))].map((found) => ({
        ...(found as object),
      }));
    return answer;
  } finally {
    await client.end();
  }
}
