import type { Database } from "../../src/sql/database.ts";
import { processes } from "../../src/stores/process/processes.ts";
import { sessions } from "../../src/stores/session/sessions.ts";

/** What every event of the load says: 80 characters. */
const text = "x".repeat(80);

/** Processes that wake a session each. */
export async function wakersIn(database: Database, count: number): Promise<readonly string[]> {
  const store = processes(database);
  const talks = sessions(database);
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const id = `process-${index}`;
      const session = `session-${index}`;
      await talks.create(session);
      await store.register({
        id,
        kind: "tool",
        wakeTarget: session,
        eventTypes: [
          {
            name: "found",
            schema: {
              type: "object",
              properties: { text: { type: "string" } },
              required: ["text"],
            },
            wake: { input: { kind: "pointer", pointer: "/text" } },
          },
        ],
      });
      return id;
    }),
  );
}

/** Each process appends so many events, one after the other; answers with events per second. */
export async function appendAll(
  database: Database,
  ids: readonly string[],
  each: number,
): Promise<number> {
  const store = processes(database);
  const startedMs = performance.now();
  await Promise.all(
    ids.map(async (id) => {
      for (let count = 0; count < each; count += 1)
        await store.append(id, {
          type: "found",
          payload: { text },
          replayKey: `k${count}`,
        });
    }),
  );
  return (ids.length * each * 1_000) / (performance.now() - startedMs);
}
