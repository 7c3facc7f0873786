import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { textRows } from "../../../src/sql/dialect.ts";
import { run, type PayloadCodec, type Database } from "../../../src/kernel.ts";
import { spelled, sql } from "../../../src/sql/statement.ts";
import { maintenance } from "../../../src/blobs.ts";
import { executions } from "../../../src/executions.ts";
import { processes } from "../../../src/processes.ts";
import { leases, sessions } from "../../../src/sessions.ts";
import type { MaintenanceCheckReport } from "../../../src/blobs.ts";
import type { CheckedTable } from "../../../src/stores/maintenance/check.ts";
import { isDeep, seed } from "../../depth.ts";
import { ownTableNames } from "../../fixtures/schema.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { writeEveryRow } from "../every-row.ts";
import { pastChecks } from "../past-checks.ts";

export function checkSuite(backend: Backend): void {
  describe("checking what is stored", () => {
    test("finds nothing wrong with rows of every kind, and reads each table", () =>
      withEveryRow(backend, async (database) => {
        const { tables, ...report } = await maintenance(database).check();
        expect(report).toEqual({
          damaged: [],
          moreDamaged: 0,
          isComplete: true,
          isSealed: false,
        });
        const names = tables.map(({ table }) => table);
        expect(names.toSorted()).toEqual(ownTableNames);
        expect(tables.filter(({ rows }) => rows === 0)).toEqual([]);
      }));

    test("finds each damaged value, hash and reference, and names its row", () =>
      withEveryRow(backend, async (database) => {
        for (const { table, statement, findings } of chosen(backend)) {
          await save(database, table);
          await shell(database, statement);
          const report = await maintenance(database).check();
          expect([statement, ...found(report)]).toEqual([statement, ...findings]);
          await restore(database, table);
        }
        expect(found(await maintenance(database).check())).toEqual([]);
      }));

    callTests(backend);
    codecTests(backend);
  });
}

function callTests(backend: Backend): void {
  test("goes row by row when told, tells of each slice, and finds the same", () =>
    withEveryRow(backend, async (database) => {
      await shell(database, "UPDATE holdfast_effect SET hash = 'other'");
      const care = maintenance(database);
      const whole = await care.check();
      const told: CheckedTable[] = [];
      const onProgress = (soFar: CheckedTable): void => void told.push(soFar);
      const sliced = await care.check({ rowsPerSlice: 1, onProgress });
      expect(sliced).toEqual(whole);
      expect(whole.damaged.length).toBe(2);
      expect(told.filter(({ table }) => table === "holdfast_effect")).toEqual([
        { table: "holdfast_effect", rows: 1 },
        { table: "holdfast_effect", rows: 2 },
        { table: "holdfast_effect", rows: 2 },
      ]);
    }));

  test("names a thousand damaged rows, and counts the rest", () =>
    withPlace(backend, async (place) => {
      const database = await place.open();
      const names = Array.from({ length: 1_005 }, (_, index) => String(index + 1).padStart(4, "0"));
      await database.write("damage", () =>
        run(sql`
          INSERT INTO holdfast_artifact (namespace, name, blob, put_at)
          SELECT 'n', value, 'odd', 1 FROM ${textRows(names)} AS names`),
      );
      const report = await maintenance(database).check();
      expect(report.damaged.length).toBe(1_000);
      expect(report.damaged[999]).toEqual({
        table: "holdfast_artifact",
        key: "n/1000",
        reason: "It refers to an invalid hash.",
      });
      expect(report.moreDamaged).toBe(5);
      expect(report.isComplete).toBe(true);
    }));

  test("names a row that cannot be read, and goes on with those behind it", () =>
    withPlace(backend, async (place) => {
      const database = await place.open();
      for (const name of ["a", "b", "c", "d"])
        await shell(
          database,
          `INSERT INTO holdfast_artifact (namespace, name, blob, put_at)
           VALUES ('n', '${name}', 'odd', ${name === "b" ? "9007199254740993" : "1"})`,
        );
      const { damaged, isComplete, tables } = await maintenance(database).check();
      expect(damaged.map(({ key }) => key)).toEqual(["n/a", "n/b", "n/c", "n/d"]);
      expect(isComplete).toBe(true);
      expect(tables).toContainEqual({ table: "holdfast_artifact", rows: 3 });
    }));

  test("goes on with the next table when the key of a row cannot be read, and says that it is not complete", () =>
    withEveryRow(backend, async (database) => {
      await shell(database, "UPDATE holdfast_app_migration SET position = 9007199254740993");
      const report = await maintenance(database).check();
      expect(report).toMatchObject({
        damaged: [{ table: "holdfast_app_migration", key: "" }],
        isComplete: false,
      });
      expect(report.tables.length).toBe(ownTableNames.length);
    }));

  test("finds nothing wrong with a fork that has hidden all it shared", () =>
    withPlace(backend, async (place) => {
      const database = await place.open();
      const store = sessions(database);
      const commit = async (id: string, ...nodes: readonly string[]) => {
        const claimant = { owner: "a", incarnation: "1" };
        const fence = await leases(database).waitForLease(id, claimant);
        await store.commit(fence.session, {
          turn: "t",
          fence,
          nodes: nodes.map((node) => ({
            id: node,
            kind: "message",
            role: "user",
            payload: node,
          })),
        });
        return () => store.tombstone(id, ["a", "b", "c"], { fence });
      };
      await store.create("s");
      const hideInSource = await commit("s", "a", "b", "c");
      await store.fork("s", "f");
      const hideInFork = await commit("f", "d", "e");
      await hideInFork();
      await hideInSource();
      await store.vacuum("s");
      expect(found(await maintenance(database).check())).toEqual([]);
    }));

  test("can be given up, and refuses options that are none", () =>
    withPlace(backend, async (place) => {
      const care = maintenance(await place.open());
      const signal = AbortSignal.abort();
      expect(await rejection(care.check({ signal }))).toMatchObject({
        code: "ABORTED",
      });
      for (const options of [
        { rowsPerSlice: 0 },
        { rowsPerSlice: 10_001 },
        { onProgress: 5 },
        { signal: 5 },
        { full: true },
      ])
        expect(await rejection(care.check(options as object))).toMatchObject({
          code: "OPTION_INVALID",
        });
    }));

  test("finds nothing wrong beside those who write, remove and prune", () =>
    withPlace(backend, async (place) => {
      const clock = manualClock(1_000_000);
      const database = await place.open({ clock });
      const store = processes(database);
      const log = executions(database);
      // So many and no more: what grows faster than it is looked at is never done with.
      let last = 0;
      const write = async (): Promise<void> => {
        for (const until = last + (isDeep ? 50 : 8); last < until; last += 1) {
          const id = `p${last}`;
          await store.spawn({ id, kind: "k", execution: { function: "f" } });
          await log.cancel(id);
          await store.prune({ olderThan: 0 });
          await log.removeFinished({ olderThan: 0 });
          await sessions(database).create(id);
          await sessions(database).delete(id);
        }
      };
      for (let round = 0; round < (isDeep ? 12 : 2); round += 1) {
        const [report] = await Promise.all([
          maintenance(database).check({ rowsPerSlice: 2 }),
          write(),
        ]);
        expect(found(report)).toEqual([]);
      }
    }));
}

function codecTests(backend: Backend): void {
  test("reads what is encrypted with the codec of the stores, and without it says that values are sealed", () =>
    withPlace(backend, async (place) => {
      const clock = manualClock(1_000_000);
      const database = await place.open({ clock });
      const payload: PayloadCodec = {
        name: "seal",
        encode: (text) => `sealed ${text}`,
        decode: (stored) => stored.replace(/^sealed /, ""),
        hash: (text) => database.sha256Hex(`a key:${text}`),
      };
      await writeEveryRow(database, clock, payload);
      const care = maintenance(database, { payload });
      expect(found(await care.check())).toEqual([]);
      const sealed = await maintenance(database).check();
      expect(sealed).toMatchObject({ damaged: [], isComplete: true, isSealed: true });
      await shell(database, "UPDATE holdfast_execution_event SET body = 'torn' WHERE version = 0");
      const torn = await maintenance(database).check();
      expect(new Set(torn.damaged.map(({ table }) => table))).toContain("holdfast_execution_event");
      await shell(database, "DELETE FROM holdfast_owner WHERE host = 'elsewhere'");
    }));
}

/** What is done by a database shell, and what a check finds then: table, key and reason. */
interface Damage {
  readonly table: string;
  readonly statement: string;
  readonly findings: readonly string[];
}

/**
 * Each is done alone to a database with rows of every kind, and undone.
 * Numbers in keys are written as #, hashes as hash.
 */
const damages: readonly Damage[] = readFileSync(
  new URL("../../fixtures/damages.txt", import.meta.url),
  "utf8",
)
  .trimEnd()
  .split("\n\n")
  .map((block) => {
    const [statement = "", ...findings] = block.split("\n");
    const [, table = ""] = /^(?:UPDATE|DELETE FROM) (\w+)/.exec(statement) ?? [];
    return {
      table,
      statement,
      findings: findings.map((line) => line.trim()),
    };
  });

/** All in memory; elsewhere, where each takes longer, every twelfth in a short round. */
function chosen(backend: Backend): readonly Damage[] {
  const isShort = backend.survives && !isDeep;
  return damages.filter((_, index) => !isShort || (index + seed) % 12 === 0);
}

async function withEveryRow(
  backend: Backend,
  body: (database: Database) => Promise<void>,
): Promise<void> {
  await withPlace(backend, async (place) => {
    const clock = manualClock(1_000_000);
    const database = await place.open({ clock });
    await writeEveryRow(database, clock);
    try {
      await body(database);
    } finally {
      await shell(database, "DELETE FROM holdfast_owner WHERE host = 'elsewhere'");
    }
  });
}

/** "table key: reason", with what differs between runs left out. */
function found({ damaged }: MaintenanceCheckReport): readonly string[] {
  return damaged.map(({ table, key, reason }) =>
    `${table} ${key}: ${reason.split(". ")[0]}`
      .replaceAll(/[0-9a-f]{24,}/g, "hash")
      .replaceAll(/[0-9]+/g, "#"),
  );
}

async function shell(database: Database, statement: string): Promise<void> {
  await said(database, { sqlite: statement, postgres: statement });
}

async function said(
  database: Database,
  spelling: { readonly sqlite: string; readonly postgres: string },
): Promise<void> {
  await database.write("shell", () => pastChecks(database, spelled(spelling)));
}

async function save(database: Database, table: string): Promise<void> {
  await shell(database, `CREATE TABLE app_saved AS SELECT * FROM ${table}`);
}

async function restore(database: Database, table: string): Promise<void> {
  await shell(database, `DELETE FROM ${table}`);
  await said(database, {
    sqlite: `INSERT INTO ${table} SELECT * FROM app_saved`,
    postgres: `INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT * FROM app_saved`,
  });
  await shell(database, "DROP TABLE app_saved");
}
