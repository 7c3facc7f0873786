import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { row, type Tx, sql, type Database } from "../../src/kernel.ts";
import { executions, type Executions } from "../../src/executions.ts";
import { Barrier } from "./barrier.ts";
import { until, withPlace } from "./place.ts";
import type { Shell } from "./place.ts";

const ok = { kind: "completed", value: 1 } as const;

interface Fixture {
  readonly database: Database;
  readonly store: Executions;
  readonly barrier: Barrier;
  readonly shell: Shell;
  /** The name of our sessions. */
  readonly app: string;
  /** Creates as the facade does, and stops before it commits. */
  readonly createAndStop: (id: string) => Promise<unknown>;
}

const onFixture = (body: (fixture: Fixture) => Promise<void>) => () =>
  withPlace(async (place) => {
    const clock = manualClock(1_000);
    const database = await place.open();
    const barrier = await Barrier.raise(place);
    const store = executions(database, { clock });
    await body({
      database,
      store,
      barrier,
      shell: place.shell(),
      app: place.app,
      createAndStop: (id) =>
        database.write(
          "create and stop",
          function* () {
            yield* store.create.prepare({ id, function: "g" })();
            yield* barrier.stop();
          },
          { isolation: "readCommitted" },
        ),
    });
  });

/** Resolves when a call is over, or waits for a row that somebody else has. */
async function overOrWaiting({ shell, app }: Fixture, call: Promise<unknown>): Promise<void> {
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  call.then(over, over);
  await until(async () => {
    const waiting = await shell`
      SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE a.application_name = ${app} AND l.locktype IN ('transactionid', 'tuple') AND NOT l.granted`;
    return isOver || waiting.length > 0;
  });
}

function orphans({ database }: Fixture): Promise<object | undefined> {
  return database.read("orphans", () =>
    row(sql`
      SELECT
        (SELECT count(*) FROM holdfast_execution x
          WHERE parent IS NOT NULL AND NOT EXISTS (SELECT 1 FROM holdfast_execution p WHERE p.key = x.parent)) AS children,
        (SELECT count(*) FROM holdfast_execution_log l
          WHERE NOT EXISTS (SELECT 1 FROM holdfast_execution x WHERE x.key = l.execution)) AS lines`),
  );
}

const noOrphans = { children: 0, lines: 0 };

/** Drives a body, and stops once after the answer to its first request for a row. */
function* driveToFirstRow<T>(body: Tx<T>, stop: () => Tx<void>): Tx<T> {
  let answer: unknown;
  for (let hasStopped = false; ;) {
    const next = body.next(answer);
    if (next.done) return next.value;
    answer = yield next.value;
    if (hasStopped || next.value.want !== "row") continue;
    hasStopped = true;
    yield* stop();
  }
}

describe("retention beside other writers", () => {
  test(
    "a child in flight keeps its parent from ending, and so from being removed",
    onFixture(async (fixture) => {
      const { store, barrier } = fixture;
      await store.create({ id: "a", function: "f" });
      const creating = fixture.createAndStop("a.n:x_1");
      await barrier.stopped(1);
      const removing = store
        .finish("a", 1, ok)
        .then(() => store.removeFinished({ function: "f", keepNewest: 0 }));
      await overOrWaiting(fixture, removing);
      await barrier.lift();
      await creating;
      expect(await removing).toMatchObject({ trees: 0, skipped: 1 });
      expect(await orphans(fixture)).toEqual(noOrphans);
      await store.finish("a.n:x_1", 1, ok);
      expect(await store.removeFinished({ keepNewest: 0 })).toMatchObject({
        trees: 1,
      });
    }),
  );

  test(
    "children created at once beside the end of their parent are there or refused, never lost",
    onFixture(async (fixture) => {
      const { store } = fixture;
      for (let round = 0; round < 10; round += 1) {
        const id = `r${round}`;
        await store.create({ id, function: "f" });
        const created = await Promise.allSettled([
          ...[1, 2, 3].map((n) => store.create({ id: `${id}.n:x_${n}`, function: "g" })),
          store.finish(id, 1, ok),
          store.removeFinished({ function: "f", keepNewest: 0 }),
        ]);
        expect(await orphans(fixture)).toEqual(noOrphans);
        for (const [n, outcome] of created.slice(0, 3).entries())
          if (outcome.status === "fulfilled") await store.finish(`${id}.n:x_${n + 1}`, 1, ok);
        await store.removeFinished({ function: "f", keepNewest: 0 });
        expect((await store.list()).items).toEqual([]);
      }
    }),
  );

  test(
    "lines in flight go with their execution, below the root too",
    onFixture(async (fixture) => {
      const { store, barrier, database } = fixture;
      await store.create({ id: "a", function: "f" });
      await store.create({ id: "a.n:x_1", function: "g" });
      await store.finish("a.n:x_1", 1, ok);
      await store.finish("a", 1, ok);
      const lastWords = store.log.prepare("a.n:x_1", [{ level: "info", message: "last words" }]);
      const logging = database.write(
        "log and stop",
        function* () {
          yield* lastWords();
          yield* barrier.stop();
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const removing = store.removeFinished({ function: "f", keepNewest: 0 });
      await overOrWaiting(fixture, removing);
      await barrier.lift();
      await logging;
      expect(await removing).toMatchObject({ trees: 1 });
      expect(await orphans(fixture)).toEqual(noOrphans);
    }),
  );

  test(
    "an id that is freed while it is asked for is taken anew",
    onFixture(async ({ store, barrier, database }) => {
      await store.create({ id: "a", function: "f" });
      await store.finish("a", 1, ok);
      const create = store.create.prepare({ id: "a", function: "f" });
      const creating = database.write(
        "create slowly",
        () => driveToFirstRow(create(), () => barrier.stop()),
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      expect(await store.removeFinished({ keepNewest: 0 })).toMatchObject({
        trees: 1,
      });
      await barrier.lift();
      expect(await creating).toMatchObject({ existed: false, nextVersion: 1 });
      expect(await store.get("a")).toMatchObject({ function: "f" });
    }),
  );
});
