import { expect, test } from "vitest";
import type { Tx, Database, Page } from "../../src/kernel.ts";
import { executions } from "../../src/executions.ts";
import { Barrier, driveUntil } from "./barrier.ts";
import { withPlace } from "./place.ts";
import type { Shell } from "./place.ts";

/**
 * Inside a body that is `readCommitted` each statement sees another state of
 * the database, and a lock on the root keeps no shell from removing rows below
 * it. A list must not take the difference for its end.
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
