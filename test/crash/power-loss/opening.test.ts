// What opening, closing and backing up leave on a disk that loses its power, names included, and who flushes for them.
import { run, sql } from "../../../src/kernel.ts";
import { openSqlite } from "../../../src/sqlite.ts";
import { compiled } from "../../compile-children.ts";
import { describe, expect, test } from "vitest";
import { isDeep, seed, seededRandom, timeoutMs } from "../../depth.ts";
import { crashImages, crashModes } from "./images.ts";
import type { CrashImage } from "./images.ts";
import { recordRun, removeRecording } from "./record.ts";
import type { RecordedProcess } from "./record.ts";
import { databaseName, marksBefore, withoutFolderFlushes } from "./recording.ts";
import type { Recording } from "./recording.ts";
import { openConnection, withImage } from "./verify.ts";

const script = compiled("crash/power-loss/opening-process.ts");

type Role = "open" | "begin" | "go on" | "back up";

/** Flushes take longer than what may be flushed in line. */
function opener(role: Role): RecordedProcess {
  return { script, args: [role], flushDelayMs: 3 };
}

const record = (...roles: readonly Role[]): Promise<Recording> =>
  recordRun({ timeoutMs, generations: roles.map((role) => [opener(role)]) });

/** Every image in every mode, at every record in deep rounds and after every mark in short ones. */
async function problemsOf(
  recording: Recording,
  check: (image: CrashImage, facts: readonly string[]) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const crashPoints = recording.records.flatMap((found, index) =>
    isDeep || found.kind === "mark" ? [index + 1] : [],
  );
  const problems: string[] = [];
  for (const mode of crashModes)
    for (const image of crashImages(recording, {
      crashPoints,
      mode,
      random: seededRandom(seed),
    })) {
      const facts = marksBefore(recording, image.crashPoint).map(
        (mark) => (JSON.parse(mark) as { fact: string }).fact,
      );
      for (const problem of await check(image, facts))
        problems.push(`after ${image.crashPoint}, ${mode}: ${problem}`);
    }
  return problems;
}

/** The notes among the facts are in the file of that name. */
function notesIn(
  name: "" | "-backup",
): (image: CrashImage, facts: readonly string[]) => Promise<readonly string[]> {
  return (image, facts) =>
    withImage(image, (path) => {
      const notes = facts.filter((fact) => /^[a-e]$/.test(fact));
      if (notes.length === 0) return [];
      if (!image.files.has(name)) return [`${databaseName}${name} is gone`];
      const connection = openConnection(path + name);
      try {
        const found = connection.prepare("SELECT id FROM app_note WHERE half = 2").all() as {
          id: string;
        }[];
        const ids = new Set(found.map(({ id }) => id));
        return notes.filter((note) => !ids.has(note)).map((id) => `lost ${id}`);
      } finally {
        connection.close();
      }
    });
}

describe.runIf(process.platform === "linux")("opening", () => {
  test("a new file, writing, closing and opening again flush nothing on the event loop's thread", async () => {
    const recording = await record("begin", "open", "go on");
    const begins = recording.records.filter((found) => found.kind === "flushBegin");
    expect(begins.length).toBeGreaterThan(8);
    expect(begins.filter((found) => found.isOnMainThread)).toEqual([]);
    removeRecording(recording);
  });

  test("a file that was closed in order, and closing it, flushes nothing at all and writes nothing", async () => {
    const recording = await record("begin", "open");
    const reopened = recording.records.findLastIndex(
      (found) => found.kind === "mark" && found.text.includes('"c"'),
    );
    const closed = recording.records.findIndex(
      (found, index) => index > reopened && found.kind === "mark" && found.text.includes("closed"),
    );
    const kinds = recording.records
      .slice(closed + 1)
      .map(({ kind }) => kind)
      .filter((kind) => kind !== "mark");
    // The log is made by SQLite's first read and removed by its last close.
    expect(kinds).toEqual(["create", "unlink"]);
    removeRecording(recording);
  });

  test("a new file keeps its name, and its log's, with the first fact", async () => {
    const recording = await record("begin");
    expect(await problemsOf(recording, notesIn(""))).toEqual([]);
    // Without a flush of the folder there is a disk that has lost them.
    const careless = withoutFolderFlushes(recording);
    expect(await problemsOf(careless, notesIn(""))).toContainEqual(
      expect.stringContaining("app.db is gone"),
    );
    removeRecording(recording);
  });

  test("a new file never has a log before it has its first page", async () => {
    const recording = await record("begin", "go on");
    const random = seededRandom(seed);
    const crashPoints = recording.records.map((_, index) => index + 1);
    for (const mode of crashModes)
      for (const { files } of crashImages(recording, {
        crashPoints,
        mode,
        random,
      })) {
        const isLogAlone =
          (files.get("-wal")?.length ?? 0) > 0 && (files.get("")?.length ?? 0) === 0;
        expect(isLogAlone).toBe(false);
      }
    removeRecording(recording);
  });

  test("a file whose making was cut short by a kill or a power cut is opened and made whole", async () => {
    const recording = await record("begin");
    const firstFact = recording.records.findIndex(({ kind }) => kind === "mark");
    const random = seededRandom(seed);
    const step = Math.ceil(firstFact / (isDeep ? 50 : 3));
    const crashPoints = Array.from(
      { length: Math.ceil(firstFact / step) },
      (_, index) => 1 + index * step,
    );
    const problems: string[] = [];
    for (const mode of crashModes)
      for (const image of crashImages(recording, {
        crashPoints,
        mode,
        random,
      }))
        problems.push(
          ...(await withImage(image, async (path) => {
            const warnings: string[] = [];
            const database = await openSqlite(path, {
              driver: "better-sqlite3",
              onWarning: ({ code }) => warnings.push(code),
            });
            await database.write("table", () => run(sql`CREATE TABLE app_later (id INTEGER)`));
            await database.close();
            // Only a disk that has reordered writes can look damaged.
            return mode === "kept" || mode === "dropped" ? warnings : [];
          })),
        );
    expect(problems).toEqual([]);
    removeRecording(recording);
  });

  test("a backup keeps its name once it is done", async () => {
    const recording = await record("begin", "back up");
    const check = async (
      image: CrashImage,
      facts: readonly string[],
    ): Promise<readonly string[]> =>
      facts.includes("backup") ? notesIn("-backup")(image, facts) : [];
    expect(await problemsOf(recording, check)).toEqual([]);
    const careless = withoutFolderFlushes(recording);
    expect(await problemsOf(careless, check)).toContainEqual(
      expect.stringContaining("app.db-backup is gone"),
    );
    removeRecording(recording);
  });
});
