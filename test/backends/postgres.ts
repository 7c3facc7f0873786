import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { openPostgres } from "../../src/postgres.ts";
import type { Database } from "../../src/kernel.ts";
import type { Backend, Place } from "../conformance/backend.ts";
import { appSchemaOf, giveBack, makeAppSchema, takeSpare } from "../postgres/spare-schemas.ts";

const url = process.env["HOLDFAST_TEST_POSTGRES_URL"] ?? "";

export const postgresSchema: Backend = {
  name: "Postgres",
  survives: true,
  place: () => Promise.resolve(placeIn(newName())),
  async usedPlace() {
    const schema = newName();
    await takeSpare(schema);
    return placeIn(schema);
  },
};

function newName(): string {
  return `test_${randomBytes(6).toString("hex")}`;
}

function placeIn(schema: string): Place {
  const opened: Database[] = [];
  let appSchema: Promise<void> | undefined;
  const appUrl = new URL(url);
  appUrl.searchParams.set("search_path", appSchemaOf(schema));
  return {
    async open({ clock, queueCalls, isWithoutPoll } = {}) {
      await (appSchema ??= makeAppSchema(schema));
      const database = await openPostgres(appUrl.href, {
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
      await giveBack(schema);
    },
  };
}

/** Another client, with our schema on its path, then that of the app. */
async function shell(schema: string, statements: readonly string[]): Promise<readonly object[]> {
  const client = postgres(url, {
    max: 1,
    onnotice: () => undefined,
    connection: { search_path: `${schema}, ${appSchemaOf(schema)}` },
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
