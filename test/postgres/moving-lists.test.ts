import { expect, test } from "vitest";
import type { Tx } from "../../src/sql/operation.ts";
import type { Database } from "../../src/sql/database.ts";
import { executions } from "../../src/executions.ts";
import type { Page } from "../../src/stores/list.ts";
import { triggers } from "../../src/triggers.ts";
import { Barrier, driveUntil } from "./barrier.ts";
import { withPlace } from "./place.ts";
import type { Shell } from "./place.ts";

/**
 * Inside a body that is `readCommitted` each statement sees another state of
 * the database. A list that takes several must not take the difference for its
 * end: whatever was there all the time is on one of its pages.
 */

interface Moving {
  readonly database: Database;
  readonly shell: Shell;
  /** A page that is read in a body of the app's, while a rival acts before the statement with these words. */
  readonly meanwhile: <T>(
    words: string,
    rival: () => Promise<unknown>,
    part: () => Tx<Page<T>>,
  ) => Promise<Page<T>>;
}

function withMoving(body: (moving: Moving) => Promise<void>): () => Promise<void> {
  return () =>
    withPlace(async (place) => {
      const database = await place.open();
      await body({
        database,
        shell: place.shell(),
        async meanwhile(words, rival, part) {
          const barrier = await Barrier.raise(place);
          const page = database.write("mine", () => driveUntil(barrier, words, part()), {
            isolation: "readCommitted",
          });
          await barrier.stopped(1);
          await rival();
          await barrier.lift();
          return page;
        },
      });
    });
}

test(
  "a list that begins with the newest goes on when newer ones come",
  withMoving(async ({ database, meanwhile }) => {
    const { record, occurrences } = triggers(database);
    const source = { type: "webhook", key: "github" };
    for (const key of ["1", "2", "3"]) await record({ key, source });
    const first = await meanwhile(
      "AS place",
      () => record({ key: "4", source }),
      occurrences.prepare(),
    );
    expect(first.items.map(({ key }) => key)).toEqual(["4", "3", "2"]);
    const rest = await occurrences({ after: first.next ?? "" });
    expect(rest.items.map(({ key }) => key)).toEqual(["1"]);
  }),
);

test(
  "a list whose large rows go while it reads them leaves them out, and goes on",
  withMoving(async ({ database, shell, meanwhile }) => {
    const log = executions(database);
    const data = "x".repeat(400_000);
    const { id, nextVersion } = await log.create({ function: "f" });
    const step = { kind: "stepFinished", name: "s", outcome: "completed" };
    await log.append(
      id,
      nextVersion,
      [1, 2, 3, 4].map((value) => ({
        ...step,
        value: { data, value },
      })) as never,
    );
    const page = await meanwhile(
      "version IN",
      () => shell`DELETE FROM holdfast_execution_event WHERE version IN (1, 2)`,
      log.events.prepare(id),
    );
    const versions = page.items.map(({ version }) => version);
    const rest = await log.events(id, { after: page.next ?? "" });
    versions.push(...rest.items.map(({ version }) => version));
    expect([...versions, page.damaged]).toEqual([0, 3, 4, []]);
  }),
);

test(
  "the log of a tree goes on when lines of others go",
  withMoving(async ({ database, shell, meanwhile }) => {
    const log = executions(database);
    await log.create({ id: "a", function: "f" });
    await log.create({ id: "b", function: "f" });
    const say = (id: string, message: string) => log.log(id, [{ level: "info", message }]);
    await say("a", "first");
    await say("b", "other");
    await shell`
      INSERT INTO holdfast_execution_log (execution, at, level, message)
      SELECT execution, at, level, message FROM holdfast_execution_log, generate_series(1, 2100)
      WHERE message = 'other'`;
    await say("a", "last");
    const first = await meanwhile(
      "AS execution",
      () =>
        shell`
          DELETE FROM holdfast_execution_log
          WHERE message = 'other' AND key < 500`,
      log.logs.prepare("a", { includeDerived: true }),
    );
    expect(first.items.map(({ message }) => message)).toEqual(["first"]);
    const rest = await log.logs("a", {
      includeDerived: true,
      after: first.next ?? "",
    });
    expect(rest.items.map(({ message }) => message)).toEqual(["last"]);
  }),
);

test(
  "a list that passes over most executions goes on when some of them go",
  withMoving(async ({ database, shell, meanwhile }) => {
    const log = executions(database);
    await log.create({ id: "found", function: "f", startAt: { in: "1h" } });
    const { createdAt } = await log.get("found");
    await log.create({ id: "x", function: "f" });
    const columns = await shell<{ name: string }[]>`
      SELECT attname AS name FROM pg_attribute
      WHERE attrelid = 'holdfast_execution'::regclass AND attnum > 0
        AND attname NOT IN ('key', 'id', 'created_at')`;
    const others = columns.map(({ name }) => `"${name}"`).join(", ");
    await shell.unsafe(`
      INSERT INTO holdfast_execution (id, created_at, ${others})
      SELECT 'x' || v, ${createdAt} + 1000 + v, ${others} FROM holdfast_execution, generate_series(1, 2100) AS numbers (v)
      WHERE id = 'x'`);
    const first = await meanwhile(
      "OFFSET",
      () => shell`DELETE FROM holdfast_execution WHERE id LIKE 'x10%'`,
      log.list.prepare({ status: "scheduled" }),
    );
    const found = first.items.map(({ id }) => id);
    for (let { next } = first; next !== undefined;) {
      const page = await log.list({ status: "scheduled", after: next });
      found.push(...page.items.map(({ id }) => id));
      next = page.next;
    }
    expect(found).toEqual(["found"]);
  }),
);
