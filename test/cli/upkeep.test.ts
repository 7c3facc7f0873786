import { existsSync, readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { openHoldfast, schedule, workflow } from "../../src/index.ts";
import { withFolder, type Folder } from "../sqlite/place.ts";
import { holdfastCli } from "./host.ts";

async function withRuns(folder: Folder): Promise<readonly string[]> {
  const holdfast = await openHoldfast(folder.file());
  for (const id of ["a", "b"])
    await holdfast.executions.create({ id, function: "f", input: { n: 1 } });
  await holdfast.close();
  return ["--db", folder.file()];
}

/** The run a is due, and no worker takes it. */
async function toldAsDamaged(args: readonly string[]): Promise<void> {
  const shown = await holdfastCli(["show", "a", ...args]);
  expect(shown.stdout).toMatch(
    /^a {2}f {2}pending\n.*\n {2}→ npx holdfast check --db \S+ {3}\(workers skip an unreadable run\)\n/,
  );
  const { code, stdout } = await holdfastCli(["doctor", ...args]);
  expect(stdout).toMatch(
    /^problem +damage +row a of holdfast_execution_event is unreadable\n +→ npx holdfast check/m,
  );
  expect(stdout).not.toContain("unserved");
  expect(stdout).toContain("1 problem.");
  expect(code).toBe(6);
}

describe("backup", () => {
  test("copies a file that is in use, replaces nothing, and its copy can be looked at", () =>
    withFolder(async (folder) => {
      const args = await withRuns(folder);
      const holdfast = await openHoldfast(folder.file());
      const made = await holdfastCli(["backup", "copy.db", "--json", ...args], {
        cwd: folder.path,
      });
      expect(made.json()).toMatchObject({ file: folder.file("copy.db") });
      const nowhere = await holdfastCli(["backup", "no/copy.db", ...args], {
        cwd: folder.path,
      });
      expect(nowhere).toMatchObject({ code: 2, stdout: "" });
      expect(nowhere.stderr).toContain('The folder "no" does not exist');
      const again = await holdfastCli(["backup", "copy.db", ...args], {
        cwd: folder.path,
      });
      expect(again.code).toBe(4);
      expect(again.stderr).toMatch(/^TARGET_EXISTS: /);
      await holdfast.close();
      const listed = await holdfastCli(["stats", "--json", "--db", folder.file("copy.db")]);
      expect(listed.json()).toMatchObject({ total: 2 });
    }));

  test("that is stopped leaves nothing, says so, and ends with 130", () =>
    withFolder(async (folder) => {
      const args = await withRuns(folder);
      const { code, stderr } = await holdfastCli(["backup", "copy.db", ...args], {
        cwd: folder.path,
        stoppedBy: "SIGINT",
      });
      expect({ code, stderr }).toEqual({
        code: 130,
        stderr: "Stopped. No copy was made, and no partial file is left.\n",
      });
      expect(readdirSync(folder.path).filter((name) => name.startsWith("copy"))).toEqual([]);
    }));
});

describe("check", () => {
  test("that is stopped says that it did not read all, and ends with 130", () =>
    withFolder(async (folder) => {
      const args = await withRuns(folder);
      const { code, stdout, stderr } = await holdfastCli(["check", ...args], {
        stoppedBy: "SIGINT",
      });
      expect({ code, stdout }).toEqual({ code: 130, stdout: "" });
      expect(stderr).toMatch(/^Stopped before all rows were read/);
    }));

  test("names a damaged row, and ends with 6", () =>
    withFolder(async (folder) => {
      const args = await withRuns(folder);
      folder.shell(["UPDATE holdfast_execution_event SET body = '{]' WHERE version = 0"]);
      const { code, stdout } = await holdfastCli(["check", ...args]);
      expect(code).toBe(6);
      expect(stdout).toMatch(/^holdfast_execution_event a#0: .+$/m);
      expect(stdout).toContain("Damage was found.");
      const full = await holdfastCli(["check", "--full", "--json", ...args]);
      expect(full.json()).toMatchObject({ isSound: false, problems: [] });
    }));
});

describe("repair", () => {
  test("says what it would do and ends with 6, repairs when told to, and then finds nothing", () =>
    withFolder(async (folder) => {
      const args = await withRuns(folder);
      folder.shell(["UPDATE holdfast_execution SET lifecycle = 'parked' WHERE id = 'b'"]);
      const checked = await holdfastCli(["check", "--full", ...args]);
      expect(checked.code).toBe(6);
      expect(checked.stdout).toMatch(/^holdfast_execution b: Its row contradicts its log: /m);
      expect(checked.stdout).toContain("holdfast repair");
      const shown = await holdfastCli(["show", "b", ...args]);
      expect(shown).toMatchObject({ code: 1, stdout: "" });
      expect(shown.stderr).toMatch(/^CORRUPT_ROW: .* `npx holdfast repair /);
      const asked = await holdfastCli(["repair", ...args]);
      expect(asked).toMatchObject({ code: 6, stderr: "" });
      expect(asked.stdout).toBe(
        "b  repairable: Its row contradicts its log: its lifecycle is parked, but active according to its log.\n" +
          "Nothing was changed. With --apply, 1 of 2 runs is repaired and 0 are skipped.\n",
      );
      const applied = await holdfastCli(["repair", "--apply", "--json", ...args]);
      expect(applied.json()).toMatchObject({ isApplied: true, runs: 2, repaired: 1, left: 0 });
      expect(applied.code).toBe(0);
      const again = await holdfastCli(["repair", "--apply", ...args]);
      expect(again).toMatchObject({ code: 0, stderr: "" });
      expect(again.stdout).toBe("Nothing to repair: 2 runs agree with their logs.\n");
      expect((await holdfastCli(["check", ...args])).code).toBe(0);
    }));
});

describe("doctor", () => {
  test("finds nothing wrong with a new database, names the process that has it open, and changes nothing", () =>
    withFolder(async (folder) => {
      const holdfast = await openHoldfast(folder.file());
      await holdfast.executions.create({
        id: "later",
        function: "f",
        startAt: { in: "1 hour" },
      });
      const args = ["--db", folder.file()];
      const { code, stdout } = await holdfastCli(["doctor", ...args]);
      expect(stdout).toContain(`${holdfast.database.owner} on `);
      expect(stdout).toMatch(/database +SQLite \d.* \((better-sqlite3|node:sqlite)\)/);
      // Which file system it is on is known on Linux, of those that are usual.
      expect(stdout).toMatch(/^ok +file +.* free( on \S+)?$/m);
      expect(stdout).toContain("No problems found.");
      expect(code).toBe(0);
      await holdfast.close();
      expect(existsSync(folder.file("app.db-owners"))).toBe(false);
    }));

  test("says of a file that was moved to Postgres that it takes no writes, and what to do", () =>
    withFolder(async (folder) => {
      const args = await withRuns(folder);
      for (const [state, told] of [
        ["moving", /move +it is being moved to Postgres[^]*--give-up/],
        ["moved", /move +it was moved to Postgres[^]*the URL of that database/],
      ] as const) {
        folder.shell([
          `INSERT OR REPLACE INTO holdfast_move (id, move, state, at) VALUES (1, 'm', '${state}', 0)`,
        ]);
        const { code, stdout } = await holdfastCli(["doctor", ...args]);
        expect({ code, stdout }).toEqual({
          code: 6,
          stdout: expect.stringMatching(told) as string,
        });
      }
    }));
});

describe("rows that cannot be read", () => {
  test("are named by schedules beside those that can", () =>
    withFolder(async (folder) => {
      const holdfast = await openHoldfast(folder.file());
      const sweep = workflow("sweep", async () => undefined);
      await holdfast.work([
        sweep,
        schedule("hourly", { cron: "0 * * * *" }, sweep),
        schedule("nightly", { cron: "0 3 * * *" }, sweep),
      ]);
      await holdfast.close();
      folder.shell(["UPDATE holdfast_schedule SET cadence = 'garbage' WHERE name = 'nightly'"]);
      const args = ["--db", folder.file()];
      const told = await holdfastCli(["schedules", ...args]);
      expect(told).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^hourly +sweep/m) as string,
        stderr: `Row nightly of holdfast_schedule_function is unreadable. Run npx holdfast check --db ${folder.file()} for details.\n`,
      });
      const json = await holdfastCli(["schedules", "--json", ...args]);
      expect(json.code).toBe(0);
      expect(json.json()).toMatchObject({
        items: [{ name: "hourly" }],
        damaged: [{ table: "holdfast_schedule_function", key: "nightly" }],
      });
    }));

  test("are a problem to doctor, also when nothing else is wrong", () =>
    withFolder(async (folder) => {
      const args = await withRuns(folder);
      folder.shell([
        "PRAGMA ignore_check_constraints = 1",
        // By an event that is not there.
        "UPDATE holdfast_execution SET lifecycle = 'parked' WHERE id = 'a'",
        "DELETE FROM holdfast_execution WHERE id = 'b'",
      ]);
      const { code, stdout } = await holdfastCli(["doctor", ...args]);
      expect(stdout).toMatch(
        /^problem +damage +row a of holdfast_execution is unreadable\n +→ .*holdfast check/m,
      );
      expect(stdout).toContain("1 problem.");
      expect(code).toBe(6);
    }));

  test("of a due run are what show and doctor name, and no worker is asked for", () =>
    withFolder(async (folder) => {
      const args = await withRuns(folder);
      folder.shell([
        "UPDATE holdfast_execution SET due_at = 0",
        "DELETE FROM holdfast_execution WHERE id = 'b'",
      ]);
      const unserved = await holdfastCli(["show", "a", ...args]);
      expect(unserved.stdout).toMatch(/^a {2}f {2}unserved\n.*\n {2}→ start a worker/);
      folder.shell([`UPDATE holdfast_execution_event SET payload = '{"n":2}' WHERE version = 0`]);
      await toldAsDamaged(args);
      folder.shell([
        `UPDATE holdfast_execution_event SET payload = '{"n":1}' WHERE version = 0`,
        // By an event that is not there.
        "UPDATE holdfast_execution SET version = 1 WHERE id = 'a'",
      ]);
      await toldAsDamaged(args);
    }));
  test("are named by show, which shows the rest of the run", () =>
    withFolder(async (folder) => {
      const args = await withRuns(folder);
      folder.shell(["UPDATE holdfast_execution_event SET body = '{]' WHERE version = 0"]);
      const told = await holdfastCli(["show", "a", ...args]);
      expect(told).toMatchObject({
        code: 0,
        stderr: `Row a#0 of holdfast_execution_event is unreadable. Run npx holdfast check --db ${folder.file()} for details.\n`,
      });
      const json = await holdfastCli(["show", "a", "--json", ...args]);
      expect(json.json()).toMatchObject({
        damaged: [{ table: "holdfast_execution_event", key: "a#0" }],
      });
    }));
});
