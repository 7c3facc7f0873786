import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { operation, rows, run, type Operation, sql, type Database } from "../../src/kernel.ts";
import { compiled, nodeForEveryone } from "../compile-children.ts";
import { isRoot } from "../readable-by-all.ts";
import { mayBeNobody } from "../sqlite/nobody.ts";
import { addNote, createNoteTable, noteCount } from "../conformance/notes.ts";
import { isDeep, seed, seededRandom } from "../depth.ts";
import { fill, heavyReads, remains } from "../sqlite/heavy.ts";
import { withFolder } from "../sqlite/place.ts";
import type { Folder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

interface Entry {
  readonly caller: number;
  readonly n: number;
}

/** One call of one caller: a row in each of two tables. */
const addEntry: Operation<Entry, void> = operation("addEntry", {
  key: (input: Entry) => String(input.caller),
  *one({ caller, n }) {
    yield* run(sql`INSERT INTO app_left (caller, n) VALUES (${caller}, ${n})`);
    yield* run(sql`INSERT INTO app_right (caller, n) VALUES (${caller}, ${n})`);
  },
});

const runner = [compiled("crash/backup-runner.ts")];

async function filled(folder: Folder, kilobytes: number): Promise<void> {
  const database = await folder.open();
  await database.write("tables", createNoteTable);
  await database.write(addNote, { id: "a" });
  await database.close();
  fill(folder, kilobytes);
}

/** What a backup must be: sound, and with the note that the source had. */
async function expectSound(folder: Folder, name: string): Promise<void> {
  const heavy = heavyReads(folder.file(name));
  expect(await heavy.check({ full: true })).toMatchObject({
    ok: true,
    problems: [],
  });
  await heavy.close();
  const database = await folder.open({}, {}, name);
  expect(await noteCount(database)).toBe(2);
  await database.close();
}

describe("a backup under load", () => {
  const callers = 8;
  const rounds = isDeep ? 20 : 2;

  const entries = async (
    database: Database,
  ): Promise<{ left: readonly Entry[]; right: readonly Entry[] }> => ({
    left: await database.read("left", () =>
      rows<Entry>(sql`SELECT caller, n FROM app_left ORDER BY id`),
    ),
    right: await database.read("right", () =>
      rows<Entry>(sql`SELECT caller, n FROM app_right ORDER BY id`),
    ),
  });

  test(`is sound and holds a prefix of what ${callers} callers wrote, ${rounds} times`, () =>
    withFolder(async (folder) => {
      const database = await folder.open({ limits: { walBytes: 262_144 } });
      folder.shell([
        "CREATE TABLE app_left (id INTEGER PRIMARY KEY AUTOINCREMENT, caller INTEGER, n INTEGER)",
        "CREATE TABLE app_right (id INTEGER PRIMARY KEY AUTOINCREMENT, caller INTEGER, n INTEGER)",
      ]);
      const heavy = heavyReads(folder.file());
      const acknowledged = new Array<number>(callers).fill(0);
      let isOver = false;
      const write = async (caller: number): Promise<void> => {
        for (let n = 1; !isOver; n += 1) {
          await database.write(addEntry, { caller, n });
          acknowledged[caller] = n;
        }
      };
      const writing = Promise.all(acknowledged.map((_, caller) => write(caller)));
      for (let round = 0; round < rounds; round += 1) {
        const before = [...acknowledged];
        await heavy.backup(folder.file(`copy${round}.db`));
        const copy = await folder.open({}, {}, `copy${round}.db`);
        const { left, right } = await entries(copy);
        expect(right).toEqual(left);
        for (let caller = 0; caller < callers; caller += 1) {
          const own = left.filter((entry) => entry.caller === caller);
          expect(own.map(({ n }) => n)).toEqual(own.map((_, index) => index + 1));
          // What was acknowledged before the backup began is in it.
          expect(own.length).toBeGreaterThanOrEqual(before[caller] ?? 0);
        }
        await copy.close();
        const check = heavyReads(folder.file(`copy${round}.db`));
        expect(await check.check({ full: true })).toMatchObject({ ok: true });
        await check.close();
      }
      isOver = true;
      await writing;
      await heavy.close();
      expect((await entries(database)).left.length).toBeGreaterThan(0);
    }));
});

describe("a killed backup", () => {
  const rounds = isDeep ? 30 : 2;

  /** Runs a backup in a group of processes of its own and kills all of them. */
  async function killed(folder: Folder, lines: number): Promise<string> {
    const group = spawn(process.execPath, [...runner, folder.file(), folder.file("copy.db")], {
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
    let output = "";
    const ended = once(group, "close");
    for await (const chunk of group.stdout.setEncoding("utf8")) {
      output += String(chunk);
      if (output.split("\n").length <= lines) continue;
      if (group.pid !== undefined) process.kill(-group.pid, "SIGKILL");
      break;
    }
    await ended;
    return output;
  }

  test(`leaves the source as it was, and the next one succeeds, ${rounds} times`, () =>
    withFolder(async (folder) => {
      const random = seededRandom(seed);
      await filled(folder, 30_000);
      for (let round = 0; round < rounds; round += 1) {
        const output = await killed(folder, 1 + Math.floor(random() * 3));
        // It has its name only when it is complete.
        if (existsSync(folder.file("copy.db"))) await expectSound(folder, "copy.db");
        else expect(output).not.toContain("done");
        const heavy = heavyReads(folder.file());
        await heavy.backup(folder.file(`next${round}.db`));
        if (!existsSync(folder.file("copy.db"))) {
          await heavy.backup(folder.file("copy.db"));
          expect(remains(folder)).toEqual([]);
        }
        await heavy.close();
        await expectSound(folder, `next${round}.db`);
        for (const name of ["copy.db", `next${round}.db`])
          rmSync(folder.file(name), { force: true });
      }
      await expectSound(folder, "app.db");
    }));

  test("of which only the caller died cleans up after itself", () =>
    withFolder(async (folder) => {
      await filled(folder, 20_000);
      // Stuck, or it might be through before the kill reaches it.
      const child = new Child("backup-runner.ts", [folder.file(), folder.file("copy.db"), "stuck"]);
      await child.reported(1);
      child.kill();
      await child.ended;
      while (remains(folder).length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
      const heavy = heavyReads(folder.file());
      // Nobody was left to say that it may have its name.
      expect(existsSync(folder.file("copy.db"))).toBe(false);
      await heavy.backup(folder.file("copy.db"));
      await heavy.close();
      await expectSound(folder, "copy.db");
    }));
});

describe("a backup without room", () => {
  const shell = (script: string, folder: Folder, to: string): string => {
    const child = spawnSync(
      "bash",
      ["-c", script, process.execPath, ...runner, folder.file(), to],
      { encoding: "utf8" },
    );
    return child.stdout + child.stderr;
  };

  test("below its size limit fails, says so, and leaves nothing", () =>
    withFolder(async (folder) => {
      await filled(folder, 4_000);
      const to = folder.file("copy.db");
      const output = shell('ulimit -f 2000; exec "$0" "$@"', folder, to);
      expect(output).toContain("BACKUP_FAILED");
      expect(existsSync(to)).toBe(false);
      expect(remains(folder)).toEqual([]);
      await expectSound(folder, "app.db");
    }));

  const smallDisk = (folder: string): string => `mount -t tmpfs -o size=2m none "${folder}"`;
  /** Linux lets most users mount a disk of memory in a namespace of their own. */
  const mayMount = spawnSync("bash", ["-c", `unshare -rm ${smallDisk("/mnt")}`]).status === 0;

  test.runIf(mayMount)("on a full disk is DISK_FULL, and leaves nothing", () =>
    withFolder(async (folder) => {
      await filled(folder, 4_000);
      const small = folder.file("small");
      mkdirSync(small);
      const output = shell(
        `exec unshare -rm bash -c '${smallDisk(small)} && "$0" "$@"; ls -A "${small}"' "$0" "$@"`,
        folder,
        join(small, "copy.db"),
      );
      // The list of what is left comes last, and is empty.
      expect(output.trim().split("\n").at(-1)).toMatch(/^DISK_FULL/);
    }),
  );

  test.runIf(mayBeNobody)("in a folder that may not be written fails and says what to check", () =>
    withFolder(async (folder) => {
      await filled(folder, 10);
      const closed = folder.file("closed");
      mkdirSync(closed);
      chmodSync(closed, 0o555);
      chmodSync(folder.path, 0o755);
      chmodSync(folder.file(), 0o644);
      const child = spawnSync(
        nodeForEveryone(),
        [...runner, folder.file(), join(closed, "copy.db")],
        {
          encoding: "utf8",
          ...(isRoot && { uid: 65_534, gid: 65_534 }),
        },
      );
      expect(child.stdout).toContain("BACKUP_FAILED");
      expect(child.stdout).toContain("permissions");
    }),
  );
});
