import { on } from "node:events";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, test } from "vitest";
import { registerFile } from "../../src/backends/sqlite/file.ts";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { openSqlite } from "../../src/sqlite.ts";
import { rejection } from "../conformance/backend.ts";
import { addNote, createNoteTable, noteHalves } from "../conformance/notes.ts";
import { mayBeNobody, openAsNobody } from "./nobody.ts";
import { driverName, withFolder } from "./place.ts";
import { migrationNumbers, schemaNumber } from "../fixtures/schema.ts";

describe("opening a file", () => {
  test("creates missing folders, and the file for its owner alone", () =>
    withFolder(async (folder) => {
      await folder.open({}, {}, "a/b/app.db");
      expect(statSync(folder.file("a/b/app.db")).mode & 0o777).toBe(0o600);
      expect(statSync(folder.file("a/b/app.db-wal")).mode & 0o777).toBe(0o600);
    }));

  test("leaves the app's settings and tables in an existing file alone", () =>
    withFolder(async (folder) => {
      folder.shell([
        "PRAGMA page_size = 8192",
        "PRAGMA user_version = 41",
        "PRAGMA application_id = 77",
        "CREATE TABLE app_user (id INTEGER)",
      ]);
      await (await folder.open()).close();
      expect(folder.shell(["PRAGMA user_version"])).toEqual([{ user_version: 41 }]);
      expect(folder.shell(["PRAGMA application_id"])).toEqual([{ application_id: 77 }]);
      expect(folder.shell(["PRAGMA page_size"])).toEqual([{ page_size: 8192 }]);
    }));

  test("initialises an empty file", () =>
    withFolder(async (folder) => {
      writeFileSync(folder.file(), "");
      await (await folder.open()).close();
      expect(folder.shell(["SELECT number FROM holdfast_migration"])).toEqual(migrationNumbers);
    }));

  test("rolls back what a power cut left of the switch to a log, whatever of the log there is", () =>
    withFolder(async (folder) => {
      folder.shell(["CREATE TABLE app_user (name TEXT)"], "old.db");
      folder.shell(["INSERT INTO app_user VALUES ('ada')"], "old.db");
      const half = loadDriver(driverName).open(folder.file("old.db"), {
        readOnly: false,
      });
      // A transaction larger than its cache writes to the file before it commits.
      half.exec("PRAGMA cache_size = 1");
      half.exec("BEGIN; UPDATE app_user SET name = 'bob'");
      half.exec(
        `INSERT INTO app_user VALUES ${Array.from({ length: 100 }, () => `('${"x".repeat(1_000)}')`).join()}`,
      );
      for (const part of ["", "-journal"])
        copyFileSync(folder.file(`old.db${part}`), folder.file(`app.db${part}`));
      half.exec("ROLLBACK");
      half.close();
      await folder.open({}, {}, "logged.db").then(async (logged) => {
        await logged.write("table", createNoteTable);
        copyFileSync(folder.file("logged.db-wal"), folder.file("app.db-wal"));
      });
      truncateSync(folder.file("app.db-wal"), 32);
      expect(readFileSync(folder.file()).includes("bob")).toBe(true);
      await (await folder.open()).close();
      expect(folder.shell(["SELECT name FROM app_user"])).toEqual([{ name: "ada" }]);
    }));

  test("refuses a directory", () =>
    withFolder(async (folder) => {
      mkdirSync(folder.file());
      const error = await rejection(folder.open());
      expect(error).toMatchObject({ code: "DATABASE_PATH_INVALID" });
      expect(error.message).toContain("is a folder");
    }));

  test("refuses a URL without showing it, and names what takes one", async () => {
    const error = await rejection(openSqlite("postgres://ada:secret@db/app"));
    expect(error).toMatchObject({ code: "DATABASE_PATH_INVALID" });
    expect(error.message).toContain("openPostgres");
    expect(JSON.stringify([error.message, error.details])).not.toContain("secret");
  });

  test.each(["", "file:app.db", "a\0b", undefined, 5])("refuses the path %j", async (path) => {
    expect(await rejection(openSqlite(path as string))).toMatchObject({
      code: "DATABASE_PATH_INVALID",
    });
  });

  test.each([
    ["white space at its end", "app.db\n", "white space"],
    ["white space at its beginning", " app.db", "white space"],
    ["nothing but white space", " ", "white space"],
    ["a lone surrogate", "app\ud800.db", "lone surrogate"],
    ["U+0000", "app\0.db", "U+0000"],
    ["300,000 characters", "a/".repeat(150_000), "characters, too many"],
  ])("refuses a path with %s, and leaves no trace", (_, name, said) =>
    withFolder(async (folder) => {
      const isLeading = name.trimStart() !== name && name !== " ";
      const path = isLeading ? ` ${folder.file()}` : folder.file(name);
      const error = await rejection(openSqlite(path));
      expect(error).toMatchObject({ code: "DATABASE_PATH_INVALID" });
      expect(error.message).toContain(said);
      const told = JSON.stringify([error.message, error.details]);
      expect(told.length).toBeLessThan(1_000);
      expect(readdirSync(folder.path)).toEqual([]);
    }),
  );

  test("refuses a path that only a shell would find the home folder by", async () => {
    const error = await rejection(openSqlite("~/holdfast-none/app.db"));
    expect(error).toMatchObject({ code: "DATABASE_PATH_INVALID" });
    expect(error.message).toContain("homedir()");
    expect(existsSync("~")).toBe(false);
  });

  test("refuses a link to a file whose name ends with white space", () =>
    withFolder(async (folder) => {
      writeFileSync(folder.file("app.db "), "");
      symlinkSync(folder.file("app.db "), folder.file());
      const error = await rejection(folder.open());
      expect(error).toMatchObject({ code: "DATABASE_PATH_INVALID" });
      expect(readdirSync(folder.path).toSorted()).toEqual(["app.db", "app.db "]);
    }));

  test("does not show the password of a URL with white space before it", async () => {
    const error = await rejection(openSqlite(" postgres://ada:secret@db/app"));
    expect(error).toMatchObject({ code: "DATABASE_PATH_INVALID" });
    expect(JSON.stringify([error.message, error.details])).not.toContain("secret");
  });

  test("refuses what is not a database, and leaves it as it was", () =>
    withFolder(async (folder) => {
      const content = "This is a letter, not a database.\n".repeat(100);
      writeFileSync(folder.file(), content);
      expect(await rejection(folder.open())).toMatchObject({
        code: "NOT_A_DATABASE",
        retryable: false,
      });
      expect(statSync(folder.file()).size).toBe(content.length);
    }));

  test.runIf(mayBeNobody)("refuses a file that may not be written", () =>
    withFolder(async (folder) => {
      await (await folder.open()).close();
      chmodSync(folder.file(), 0o444);
      chmodSync(folder.path, 0o555);
      try {
        expect(openAsNobody(folder.file())).toContain("DATABASE_NOT_WRITABLE");
      } finally {
        chmodSync(folder.path, 0o755);
      }
    }),
  );

  test.runIf(mayBeNobody)("refuses a folder that may not be written", () =>
    withFolder(async (folder) => {
      chmodSync(folder.path, 0o555);
      try {
        expect(openAsNobody(folder.file())).toContain("DATABASE_NOT_WRITABLE");
      } finally {
        chmodSync(folder.path, 0o755);
      }
    }),
  );

  test("refuses a network file system by name, and warns of a doubtful one", () =>
    withFolder(async (folder) => {
      const error = await rejection(folder.open({}, { fileSystem: () => 0x6969 }));
      expect(error).toMatchObject({
        code: "NETWORK_FILE_SYSTEM",
        details: { fileSystem: "NFS" },
      });
      const warnings: object[] = [];
      await folder.open(
        { onWarning: (warning) => warnings.push(warning) },
        { fileSystem: () => 0x65735546 },
      );
      expect(warnings).toMatchObject([
        {
          code: "FILE_SYSTEM_DOUBTFUL",
          message: expect.stringContaining("FUSE"),
        },
      ]);
    }));

  test("goes on when the listener for warnings throws, and the warning is not lost", () =>
    withFolder(async (folder) => {
      const said = doubtfulWarning();
      await folder.open(
        {
          onWarning: () => {
            throw new Error("listener's bug");
          },
        },
        { fileSystem: () => 0x65735546 },
      );
      const warning = await said;
      expect(warning.message).toMatch(/FUSE.*listener's bug/);
    }));

  test("refuses a second copy of SQLite on the same file in one process", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      const other = { ...loadDriver(driverName), identity: {} };
      expect(() => registerFile(folder.file(), other)).toThrow(
        expect.objectContaining({ code: "DRIVER_CONFLICT" }),
      );
      await database.close();
      registerFile(folder.file(), other)();
      await folder.open();
    }));

  test("names the reasons and the fix when no driver can be loaded", () => {
    const failing = (reason: string) => () => {
      throw new Error(`${reason}\nand a stack`);
    };
    const load = () =>
      loadDriver(undefined, undefined, {
        "better-sqlite3": failing("built for another Node"),
        "node:sqlite": failing("no such module"),
      });
    expect(load).toThrow(
      expect.objectContaining({
        code: "DRIVER_MISSING",
        details: {
          node: process.version,
          reasons: ["better-sqlite3: built for another Node", "node:sqlite: no such module"],
        },
      }),
    );
    expect(load).toThrow("npm rebuild better-sqlite3");
  });

  test("takes the next driver when the first cannot be loaded", () => {
    const driver = loadDriver(undefined, undefined, {
      "better-sqlite3": () => {
        throw new Error("not installed");
      },
      "node:sqlite": () => loadDriver(driverName),
    });
    expect(driver.name).toBe(driverName);
  });

  test.each<[string, object]>([
    ["driver", { driver: "sqlite" }],
    ["durability", { durability: "fast" }],
    ["readOnly", { readOnly: "yes" }],
    ["limits.batchCalls", { limits: { batchCalls: 0 } }],
    ["limits.batchCall", { limits: { batchCall: 5 } }],
    ["queueCallsMax", { queueCallsMax: 0.5 }],
    ["clock", { clock: 5 }],
    ["clock", { clock: { now: () => 5 } }],
    ["onWarning", { onWarning: "log" }],
    ["durabilty", { durabilty: "full" }],
  ])("refuses a bad option %s by name", async (option, options) => {
    const error = await rejection(openSqlite(":memory:", options));
    expect(error).toMatchObject({
      code: "OPTION_INVALID",
      details: { option },
    });
  });
});

/** Other files of this process may have left something that is warned of first. */
async function doubtfulWarning(): Promise<Error> {
  for await (const [warning] of on(process, "warning") as AsyncIterable<
    [Error & { readonly code?: string }]
  >)
    if (warning.code === "FILE_SYSTEM_DOUBTFUL") return warning;
  throw new Error("Warnings never end.");
}

describe("opening a file read-only", () => {
  test("reads and refuses to write", () =>
    withFolder(async (folder) => {
      const writer = await folder.open();
      await writer.write("tables", createNoteTable);
      const reader = await folder.open({ readOnly: true });
      await writer.write(addNote, { id: "a" });
      expect(await noteHalves(reader)).toBe("a1 a2");
      expect(await rejection(reader.write(addNote, { id: "b" }))).toMatchObject({
        code: "READ_ONLY",
      });
      await writer.close();
      expect(await noteHalves(reader)).toBe("a1 a2");
    }));

  test("creates nothing", () =>
    withFolder(async (folder) => {
      expect(await rejection(folder.open({ readOnly: true }))).toMatchObject({
        code: "DATABASE_NOT_FOUND",
      });
      expect(existsSync(folder.file())).toBe(false);
      folder.shell(["CREATE TABLE app_user (id INTEGER)"]);
      expect(await rejection(folder.open({ readOnly: true }))).toMatchObject({
        code: "SCHEMA_OUTDATED",
        details: { found: 0, expected: schemaNumber },
      });
    }));
});
