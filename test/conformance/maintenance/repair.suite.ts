import { describe, expect, test } from "vitest";
import {
  type GivenEvent,
  delayId,
  parseExecutionId,
  namedJoinSet,
  executions,
} from "../../../src/executions.ts";
import { rows, type Database } from "../../../src/kernel.ts";
import { parseOwnerId } from "../../../src/model/ids/prefixed-id.ts";
import { maintenance } from "../../../src/blobs.ts";
import { spelled, sql } from "../../../src/sql/statement.ts";
import { overlaid } from "../../../src/testing/overlaid.ts";
import { Meddling } from "../runtime/meddling.ts";
import {
  ann,
  byAnn,
  byBob,
  onExecutions,
  T0,
  type ExecutionFixture,
} from "../execution/fixture.ts";
import { pastChecks } from "../past-checks.ts";
import { rejection, type Backend } from "../backend.ts";

/** The year 2286. */
const far = 9_999_999_999_999;

export function repairSuite(backend: Backend): void {
  describe("repairing rows that contradict their logs", () => {
    test(
      "finds every kind of edited row, changes none unasked, and puts each back as it was",
      onExecutions(backend, async (fixture) => {
        const { database, clock } = fixture;
        const ids = edits.map(([shape, edit], index) => ({ id: `${shape}-${index}`, shape, edit }));
        for (const { id, shape } of ids) await shapes[shape](fixture, id);
        const care = maintenance(database, { clock });
        expect((await care.check()).damaged).toEqual([]);
        const before = await allRows(database);
        for (const { id, edit } of ids) await editRow(database, id, edit);
        const edited = await allRows(database);
        const { damaged } = await care.check();
        expect(damaged.map(({ key }) => key).toSorted()).toEqual(
          ids.map(({ id }) => id).toSorted(),
        );
        const plan = await care.repair();
        expect(plan).toMatchObject({ isApplied: false, repaired: ids.length, left: 0 });
        expect(outcomesOf(plan)).toEqual(ids.map(({ id }) => [id, "repairable"]));
        expect(await allRows(database)).toEqual(edited);
        const done = await care.repair({ apply: true, rowsPerSlice: 3 });
        expect(done).toMatchObject({ isApplied: true, repaired: ids.length, left: 0 });
        expect(await allRows(database)).toEqual(before);
        expect((await care.check()).damaged).toEqual([]);
        expect(await care.repair({ apply: true })).toMatchObject({
          repaired: 0,
          left: 0,
          found: [],
        });
      }),
    );

    test(
      "says of a row what it is and what its log says",
      onExecutions(backend, async (fixture) => {
        const { database, clock } = fixture;
        await shapes.blocked(fixture, "a");
        await editRow(database, "a", "lifecycle = 'parked'");
        await shapes.blocked(fixture, "b");
        await editRow(database, "b", "seen = 7");
        await shapes.done(fixture, "c");
        await editRow(database, "c", "state = 'blocked', finished_at = NULL, result_kind = NULL");
        const { found } = await maintenance(database, { clock }).repair();
        expect(found.map(({ reason }) => reason)).toEqual([
          "Its row contradicts its log: its lifecycle is parked, but active according to its log.",
          "Its row contradicts its log: its seen differs from its log.",
          "Its row contradicts its log: it is blocked, but finished according to its log.",
        ]);
      }),
    );

    heldTests(backend);
    logTests(backend);
    callTests(backend);
  });
}

function heldTests(backend: Backend): void {
  test(
    "leaves a run that a living process has, and repairs it once that is dead",
    onExecutions(backend, async (fixture) => {
      const { database, clock } = fixture;
      await shapes.locked(fixture, "a");
      await shapes.kept(fixture, "b");
      const before = await allRows(database);
      await editRow(database, "a", "state = 'pending', due_at = 1, lock_version = NULL");
      await editRow(database, "b", "lifecycle = 'paused'");
      const meddling = new Meddling(database);
      const care = maintenance(meddling.database, { clock });
      const edited = await allRows(database);
      expect(outcomesOf(await care.repair({ apply: true }))).toEqual([
        ["a", "held"],
        ["b", "held"],
      ]);
      meddling.liveness = "unknown";
      expect(outcomesOf(await care.repair({ apply: true }))).toEqual([
        ["a", "held"],
        ["b", "held"],
      ]);
      expect(await allRows(database)).toEqual(edited);
      meddling.liveness = "dead";
      expect(await care.repair({ apply: true })).toMatchObject({ repaired: 2, left: 0 });
      expect(await allRows(database)).toEqual(before);
    }),
  );

  test(
    "leaves a run of a process that may live until its lease has passed",
    onExecutions(backend, async (fixture) => {
      const { database, clock } = fixture;
      await shapes.kept(fixture, "a");
      const before = await allRows(database);
      await editRow(database, "a", "seen = 9");
      const meddling = new Meddling(database);
      meddling.liveness = "unknown";
      const care = maintenance(meddling.database, { clock });
      clock.advance(999);
      expect(outcomesOf(await care.repair({ apply: true }))).toEqual([["a", "held"]]);
      clock.advance(1);
      expect(outcomesOf(await care.repair({ apply: true }))).toEqual([["a", "repaired"]]);
      expect(await allRows(database)).toEqual(before);
    }),
  );

  test(
    "leaves a run that a living process runs, however long ago its lease ended",
    onExecutions(backend, async (fixture) => {
      const { database, clock } = fixture;
      await shapes.locked(fixture, "a");
      await editRow(database, "a", "lifecycle = 'paused'");
      const edited = await allRows(database);
      const meddling = new Meddling(database);
      meddling.liveness = "alive";
      const care = maintenance(meddling.database, { clock });
      clock.advance(3_600_000);
      expect(outcomesOf(await care.repair({ apply: true }))).toEqual([["a", "held"]]);
      expect(await allRows(database)).toEqual(edited);
      meddling.liveness = "unknown";
      expect(outcomesOf(await care.repair({ apply: true }))).toEqual([["a", "repaired"]]);
    }),
  );

  test(
    "leaves a run that a process has taken since the run's last holder was found dead",
    onExecutions(backend, async (fixture) => {
      const { database, clock, store } = fixture;
      await shapes.locked(fixture, "a");
      await editRow(database, "a", "deadline_at = 5");
      const meddling = new Meddling(database);
      meddling.liveness = "dead";
      const care = maintenance(meddling.database, { clock });
      const repair = meddling.holdNext("repairState", "call");
      const repaired = care.repair({ apply: true });
      await repair.reached;
      await store.unlock("a", 2, { holder: ann, reason: "closed" });
      const another = overlaid(database, { owner: parseOwnerId("Own_01BX5ZZKBKACTAV9WEVGEMMVRZ") });
      await executions(another, { clock }).lock("a", 3, byBob);
      const before = await allRows(database);
      repair.release();
      expect(outcomesOf(await repaired)).toEqual([["a", "held"]]);
      expect(await allRows(database)).toEqual(before);
    }),
  );

  test(
    "judges a lease at the instant at which the repair gets its turn",
    onExecutions(backend, async (fixture) => {
      const { database, clock } = fixture;
      await shapes.kept(fixture, "a");
      await editRow(database, "a", "seen = 9");
      const meddling = new Meddling(database);
      meddling.liveness = "unknown";
      const repair = meddling.holdNext("repairState", "call");
      const repaired = maintenance(meddling.database, { clock }).repair({ apply: true });
      await repair.reached;
      clock.advance(1_000);
      repair.release();
      expect(outcomesOf(await repaired)).toEqual([["a", "repaired"]]);
    }),
  );

  test(
    "takes the lock of a row that has lost it from its log, so that it expires as any other",
    onExecutions(backend, async (fixture) => {
      const { database, clock, store } = fixture;
      await shapes.locked(fixture, "a");
      const before = await allRows(database);
      await editRow(
        database,
        "a",
        `state = 'finished', finished_at = 1, result_kind = 'failed', lease_until = NULL,
          lock_version = NULL, executor = NULL, run = NULL, owner = NULL`,
      );
      const meddling = new Meddling(database);
      meddling.liveness = "dead";
      const care = maintenance(meddling.database, { clock });
      expect(outcomesOf(await care.repair({ apply: true }))).toEqual([["a", "repaired"]]);
      expect(await allRows(database)).toEqual(before);
      clock.advance(1_000);
      await store.expireTimers();
      // Its next attempt has a pause before it.
      clock.advance(60_000);
      const { locked } = await store.lockPending({ ...byAnn, functions: ["f"], limit: 1 });
      expect(locked.map(({ id }) => id)).toEqual(["a"]);
    }),
  );

  test(
    "frees a run that waits and was locked until 2286, so that what it waits for wakes it",
    onExecutions(backend, async (fixture) => {
      const { database, clock, store } = fixture;
      await shapes.blocked(fixture, "a");
      await editRow(database, "a", `state = 'locked', lock_version = 1, lease_until = ${far}`);
      await store.signal("a", "go", 1);
      const locked = async (): Promise<readonly string[]> => {
        const found = await store.lockPending({ ...byAnn, functions: ["f"], limit: 1 });
        return found.locked.map(({ id }) => id);
      };
      expect(await locked()).toEqual([]);
      await maintenance(database, { clock }).repair({ apply: true });
      expect(await locked()).toEqual(["a"]);
    }),
  );

  test(
    "frees the place of a run that only its row says is locked, and those that wait for one are told",
    onExecutions(backend, async (fixture) => {
      const { database, clock, store } = fixture;
      await shapes.blocked(fixture, "a");
      await editRow(database, "a", `state = 'locked', lock_version = 1, lease_until = ${far}`);
      await store.create({ id: "b", function: "f" });
      const functions = [{ name: "f", concurrencyMax: 1 }];
      const meddling = new Meddling(database);
      const looking = meddling.holdNext("findLockable", "answer");
      const waiting = executions(meddling.database, { clock }).waitForPending(functions);
      await looking.reached;
      looking.release();
      await maintenance(database, { clock }).repair({ apply: true });
      await waiting;
      const { locked } = await store.lockPending({ ...byAnn, functions, limit: 1 });
      expect(locked.map(({ id }) => id)).toEqual(["b"]);
    }),
  );
}

function logTests(backend: Backend): void {
  test(
    "reports a run whose log is damaged or ends elsewhere, and leaves it",
    onExecutions(backend, async (fixture) => {
      const { database, clock } = fixture;
      const ids = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
      for (const id of ids) await shapes.blocked(fixture, id);
      for (const id of ids) await editRow(database, id, "seen = 9");
      const event = (id: string, version: number): string =>
        `execution = (SELECT key FROM holdfast_execution WHERE id = '${id}') AND version = ${version}`;
      for (const text of [
        `DELETE FROM holdfast_execution_event WHERE ${event("a", 1)}`,
        "UPDATE holdfast_execution SET version = version + 1 WHERE id = 'b'",
        `UPDATE holdfast_execution_event SET body = 'odd' WHERE ${event("c", 2)}`,
        "UPDATE holdfast_execution SET version = version - 1 WHERE id = 'd'",
        "UPDATE holdfast_execution SET history_from = 1 WHERE id = 'e'",
        `UPDATE holdfast_execution_event SET kind = 'parked' WHERE ${event("f", 1)}`,
        `UPDATE holdfast_execution_event SET body = '{}' WHERE ${event("g", 2)}`,
        `UPDATE holdfast_execution_event SET kind = 'odd' WHERE ${event("h", 1)}`,
        `UPDATE holdfast_execution_event SET body = '{}' WHERE ${event("i", 0)}`,
      ])
        await shell(database, text);
      const edited = await allRows(database);
      const report = await maintenance(database, { clock }).repair({ apply: true });
      expect(report).toMatchObject({ runs: 9, repaired: 0, left: 9 });
      expect(outcomesOf(report)).toEqual(ids.map((id) => [id, "logDamaged"]));
      expect(await allRows(database)).toEqual(edited);
    }),
  );
}

function callTests(backend: Backend): void {
  test(
    "can be given up, tells of each slice, and refuses options that are none",
    onExecutions(backend, async (fixture) => {
      const { database } = fixture;
      for (const id of ["a", "b", "c"]) await shapes.blocked(fixture, id);
      const care = maintenance(database);
      const told: number[] = [];
      await care.repair({ rowsPerSlice: 2, onProgress: ({ runs }) => void told.push(runs) });
      expect(told).toEqual([2, 3]);
      const aborted = await rejection(care.repair({ signal: AbortSignal.abort() }));
      expect(aborted.code).toBe("ABORTED");
      const odd = await rejection(care.repair({ aply: true } as object));
      expect(odd.code).toBe("OPTION_INVALID");
    }),
  );
}

type Shape = (fixture: ExecutionFixture, id: string) => Promise<void>;

async function begun({ store }: ExecutionFixture, id: string): Promise<number> {
  await store.create({ id, function: "f", input: 1 });
  return (await store.lock(id, 1, byAnn)).nextVersion;
}

async function afterEvents(
  fixture: ExecutionFixture,
  id: string,
  ...events: readonly GivenEvent[]
): Promise<void> {
  const version = await begun(fixture, id);
  await fixture.store.append(id, version, events, { fence: ann });
}

const set = namedJoinSet("set");

/** Runs as they stand in a log of ours. */
const shapes = {
  due: async ({ store }, id) => {
    await store.create({ id, function: "f", input: 1, deadline: "1h" });
  },
  locked: async (fixture, id) => {
    await begun(fixture, id);
  },
  blocked: (fixture, id) =>
    afterEvents(fixture, id, { kind: "waiting", runExpiresAt: T0, wakeAt: null }),
  kept: (fixture, id) =>
    afterEvents(fixture, id, { kind: "waiting", runExpiresAt: T0 + 1_000, wakeAt: null }),
  asleep: (fixture, id) =>
    afterEvents(fixture, id, { kind: "waiting", runExpiresAt: T0, wakeAt: T0 + 5_000 }),
  joined: (fixture, id) =>
    afterEvents(
      fixture,
      id,
      { kind: "joinSetCreated", joinSet: set },
      {
        kind: "delayRequested",
        joinSet: set,
        delay: delayId(parseExecutionId(id), set, 1),
        expiresAt: T0 + 5_000,
        startAt: { in: 5_000 },
      },
      { kind: "joinNext", joinSet: set, runExpiresAt: T0, function: null, isClosing: false },
    ),
  paused: async (fixture, id) => {
    await shapes.blocked(fixture, id);
    await fixture.store.pause(id);
  },
  cancelling: async (fixture, id) => {
    await shapes.blocked(fixture, id);
    await fixture.store.cancel(id);
  },
  done: async (fixture, id) => {
    const version = await begun(fixture, id);
    await fixture.store.finish(id, version, { kind: "completed", value: 1 }, { fence: ann });
  },
} satisfies Readonly<Record<string, Shape>>;

/** What somebody with a database shell, or a broken disk, may have made of the row of such a run. */
const edits: readonly (readonly [keyof typeof shapes, string])[] = [
  ["done", "state = 'blocked', finished_at = NULL, result_kind = NULL"],
  ["done", "state = 'pending', due_at = 5"],
  ["done", "result_kind = 'failed'"],
  ["done", "finished_at = 5"],
  ["done", "finished_at = NULL"],
  ["done", "lifecycle = 'parked'"],
  ["done", `lease_until = ${far}`],
  ["blocked", `state = 'locked', lock_version = 1, lease_until = ${far}`],
  ["blocked", `state = 'locked', lock_version = 1, lease_until = ${far}, owner = NULL`],
  [
    "blocked",
    "state = 'finished', finished_at = 5, result_kind = 'completed', executor = NULL, run = NULL, owner = NULL",
  ],
  ["blocked", "lifecycle = 'parked'"],
  ["blocked", "lifecycle = 'paused'"],
  ["blocked", "lifecycle = 'cancelling'"],
  ["blocked", "lifecycle = 'odd'"],
  ["blocked", "state = 'odd'"],
  ["blocked", "finished_at = 5"],
  ["blocked", "seen = 7"],
  ["blocked", "seen = NULL"],
  ["blocked", "seen = NULL, inbox = 'n:other', ordinal = 1, is_closing = 0"],
  ["blocked", `lease_until = ${far}`],
  ["blocked", `state = 'pending', wake_at = ${far}, due_at = ${far}`],
  ["joined", "inbox = 'n:other'"],
  ["joined", "ordinal = 5"],
  ["joined", "is_closing = 1"],
  ["joined", "is_closing = NULL"],
  ["joined", "inbox = NULL, ordinal = NULL, is_closing = NULL"],
  ["asleep", `wake_at = ${far}, due_at = ${far}`],
  ["asleep", `due_at = ${far}`],
  ["asleep", "seen = NULL, wake_at = NULL"],
  ["asleep", `due_at = ${far}, lease_until = ${far}`],
  ["due", `due_at = ${far}`],
  ["due", "due_at = NULL"],
  ["due", "deadline_at = 1"],
  ["due", "deadline_at = NULL"],
  ["due", "state = 'blocked', due_at = NULL"],
  ["paused", "lifecycle = 'active'"],
  ["paused", "lifecycle = 'parked'"],
  ["cancelling", "lifecycle = 'active'"],
  ["cancelling", `due_at = ${far}`],
];

function editRow(database: Database, id: string, edit: string): Promise<void> {
  return shell(database, `UPDATE holdfast_execution SET ${edit} WHERE id = '${id}'`);
}

function shell(database: Database, text: string): Promise<void> {
  return database.write("shell", () =>
    pastChecks(database, spelled({ sqlite: text, postgres: text })),
  );
}

function allRows(database: Database): Promise<readonly object[]> {
  return database.read("allRows", () => rows(sql`SELECT * FROM holdfast_execution ORDER BY key`));
}

function outcomesOf(report: {
  readonly found: readonly { readonly id: string; readonly outcome: string }[];
}): readonly (readonly [string, string])[] {
  return report.found.map(({ id, outcome }) => [id, outcome]);
}
