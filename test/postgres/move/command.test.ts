import { describe, expect, test } from "vitest";
import { sessions } from "../../../src/sessions.ts";
import { holdfastCli } from "../../cli/host.ts";
import type { HostOptions } from "../../cli/host.ts";
import type { Folder } from "../../sqlite/place.ts";
import type { Place } from "../place.ts";
import { movedTables, rejection, targetFilled, withBoth } from "./moving.ts";

async function small(folder: Folder): Promise<void> {
  const database = await folder.open();
  await sessions(database).create("chat");
  await database.close();
  folder.shell(["CREATE TABLE account (id TEXT PRIMARY KEY) STRICT"]);
}

function migrate(
  folder: Folder,
  place: Place,
  args: readonly string[] = [],
  options: HostOptions = {},
) {
  return holdfastCli(["migrate", "app.db", place.url, "--schema", place.schema, ...args], {
    cwd: folder.path,
    ...options,
  });
}

describe("holdfast migrate", () => {
  test("says what was moved, what was not, and what to do", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      const { code, stdout, stderr } = await migrate(folder, place);
      expect({ code, stdout: stdout.split("\n") }).toEqual({
        code: 0,
        stdout: [
          expect.stringMatching(
            /^app\.db was moved to postgres:\/\/\S+: 3 rows in \d+ tables, 0\.0 MiB\. Rows and checksums of every table agree\.$/,
          ),
          "Not copied, because they are your own tables: account. Create them in Postgres and copy their rows before workers start.",
          "Replace app.db with the URL in your program, and restart it. The file takes no more writes.",
          "",
        ],
      });
      expect(stderr).toMatch(/^Copying table 1 of \d+, holdfast_artifact/);
      expect(stderr).toContain("All data has arrived.");
      const again = await migrate(folder, place);
      expect(again.stdout).toContain("app.db had been moved to");
      const list = await holdfastCli(["list", "--db", "app.db"], {
        cwd: folder.path,
      });
      expect(list.code).toBe(0);
    }));

  test("prints a line for each step with --json, and nothing of the URL's password", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      const { code, stdout, stderr } = await migrate(folder, place, ["--json"]);
      const lines = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(lines.at(-1)).toMatchObject({
        moved: { appTables: ["account"], isRepeated: false, released: 0 },
      });
      expect(lines[0]).toEqual({
        progress: {
          phase: "copying",
          table: movedTables[0],
          number: 1,
          tables: movedTables.length,
          rows: 0,
          bytes: 0,
        },
      });
      const { password } = new URL(place.url);
      if (password !== "") expect(stdout).not.toContain(password);
    }));

  test("stopped by Ctrl-C says how to go on; --give-up makes the file usable again", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      const stopped = await migrate(folder, place, ["--json"], {
        onOutput: (_, stop) => stop("SIGINT"),
      });
      expect(stopped.code).toBe(130);
      expect(stopped.stdout.split("\n").at(-2)).toMatch(
        /^\{"stopped":\{"isBegun":true,"message":"The move was interrupted\. .*--give-up/,
      );
      expect(await targetFilled(place)).toEqual([]);
      expect(await rejection(folder.open())).toMatchObject({
        code: "MOVED_TO_POSTGRES",
      });
      expect(await migrate(folder, place, ["--give-up"])).toMatchObject({
        code: 0,
        stdout: "The move was given up. app.db can be used again. Restart the refused processes.\n",
      });
      await (await folder.open()).close();
      expect(await migrate(folder, place, ["--give-up"])).toMatchObject({
        code: 4,
        stderr: expect.stringContaining("MOVE_NOT_BEGUN") as string,
      });
    }));

  test("stopped before it began says so in one line, and ends with 130", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      const stoppedBy = "SIGINT";
      expect(await migrate(folder, place, [], { stoppedBy })).toMatchObject({
        code: 130,
        stdout: "",
        stderr: "The move was interrupted before it started; nothing was changed.\n",
      });
      const asJson = await migrate(folder, place, ["--json"], { stoppedBy });
      expect(asJson).toMatchObject({ code: 130, stderr: "" });
      expect(asJson.json()).toEqual({
        stopped: {
          isBegun: false,
          message: "The move was interrupted before it started; nothing was changed.",
        },
      });
    }));

  test("refuses a command line that makes no sense, and changes nothing", () =>
    withBoth(async (folder, place) => {
      await small(folder);
      const cwd = folder.path;
      const refused: readonly (readonly string[])[] = [
        ["migrate"],
        ["migrate", "app.db"],
        ["migrate", "app.db", "other.db"],
        ["migrate", place.url, place.url],
        ["migrate", "app.db", place.url, "--db", "app.db"],
        ["migrate", "app.db", place.url, "--force"],
        ["migrate", "app.db", place.url, "--gve-up"],
        ["migrate", ":memory:", place.url],
        ["migrate", "app.db", "postgres://%%"],
      ];
      for (const args of refused)
        expect([args, (await holdfastCli(args, { cwd })).code]).toEqual([args, 2]);
      const missing = await holdfastCli(["migrate", "none.db", place.url], {
        cwd,
      });
      expect(missing.code).toBe(3);
      await (await folder.open()).close();
    }));
});
