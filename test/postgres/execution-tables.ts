import { rows, type Tx, sql, type Database } from "../../src/kernel.ts";

/**
 * Everything that is stored about executions whose ids begin with a text, with
 * ids in the place of generated keys, so that two databases can be compared.
 */
export async function storedUnder(database: Database, prefix: string): Promise<object> {
  return database.read("stored", function* (): Tx<object> {
    const like = `${prefix}%`;
    const states = yield* rows(sql`
      SELECT to_jsonb(e) - 'key' - 'parent' AS columns, p.id AS parent
      FROM holdfast_execution e LEFT JOIN holdfast_execution p ON p.key = e.parent
      WHERE e.id LIKE ${like} ORDER BY e.id`);
    const events = yield* rows(sql`
      SELECT e.id, to_jsonb(v) - 'seq' - 'execution' AS columns
      FROM holdfast_execution_event v JOIN holdfast_execution e ON e.key = v.execution
      WHERE e.id LIKE ${like} ORDER BY e.id, v.version`);
    const responses = yield* rows(sql`
      SELECT e.id, to_jsonb(r) - 'key' - 'execution' - 'child' AS columns, c.id AS child
      FROM holdfast_execution_response r JOIN holdfast_execution e ON e.key = r.execution
        LEFT JOIN holdfast_execution c ON c.key = r.child
      WHERE e.id LIKE ${like} ORDER BY e.id, r.seq`);
    const delays = yield* rows(sql`
      SELECT e.id, to_jsonb(d) - 'key' - 'execution' AS columns
      FROM holdfast_execution_delay d JOIN holdfast_execution e ON e.key = d.execution
      WHERE e.id LIKE ${like} ORDER BY e.id, d.id`);
    const tags = yield* rows(sql`
      SELECT e.id, t.tag FROM holdfast_execution_tag t JOIN holdfast_execution e ON e.key = t.execution
      WHERE e.id LIKE ${like} ORDER BY e.id, t.tag`);
    return { states, events, responses, delays, tags };
  });
}
