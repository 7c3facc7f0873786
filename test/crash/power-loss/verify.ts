// Opens a crash image the way an application would after the power came back, and says what is wrong with it.
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crashImages, crashModes, writeImage } from "./images.ts";
import type { CrashImage, CrashMode } from "./images.ts";
import { marksBefore } from "./recording.ts";
import type { Recording } from "./recording.ts";
import type { Random } from "./disk.ts";

/** The part of better-sqlite3 that checks need. The package ships no types. */
export interface Connection {
  prepare(source: string): {
    all(...parameters: unknown[]): unknown[];
    get(...parameters: unknown[]): unknown;
  };
  exec(source: string): void;
  pragma(source: string): unknown[];
  close(): void;
}

const Sqlite = createRequire(import.meta.url)("better-sqlite3") as new (path: string) => Connection;

export function openConnection(path: string): Connection {
  return new Sqlite(path);
}

/** Compares the database with what was marked before the crash. Each returned sentence is a problem. */
type CheckFacts = (connection: Connection, marks: readonly string[]) => readonly string[];

export interface Survey {
  readonly crashPoints: readonly number[];
  /** Default: all of them. */
  readonly modes?: readonly CrashMode[];
  readonly random: Random;
  readonly checkFacts: CheckFacts;
}

export interface SurveyResult {
  readonly images: number;
  /** One sentence per problem, naming the crash point and the mode. */
  readonly problems: readonly string[];
  /** Images with at least one problem. */
  readonly imagesFailed: number;
}

/** Verifies an image for every crash point in every mode. */
export async function surveyCrashes(recording: Recording, survey: Survey): Promise<SurveyResult> {
  const problems: string[] = [];
  let images = 0;
  let imagesFailed = 0;
  for (const mode of survey.modes ?? crashModes) {
    for (const image of crashImages(recording, { ...survey, mode })) {
      const marks = marksBefore(recording, image.crashPoint);
      const found = await verifyImage(image, (connection) => survey.checkFacts(connection, marks));
      images += 1;
      if (found.length > 0) imagesFailed += 1;
      for (const problem of found)
        problems.push(`after ${image.crashPoint} records, ${mode}: ${problem}`);
    }
  }
  return { images, problems, imagesFailed };
}

/**
 * Writes the image to a folder of its own, lets SQLite recover it, runs `integrity_check` and then the caller's check.
 * Returns every problem found; an image that cannot be opened or read is a problem, not an exception.
 */
export function verifyImage(
  image: CrashImage,
  check: (connection: Connection) => readonly string[],
): Promise<readonly string[]> {
  return withImage(image, (database) => {
    const connection = openConnection(database);
    try {
      // The image is thrown away: there is no need to flush what recovery or the last close writes.
      connection.pragma("synchronous = OFF");
      const integrity = connection.pragma("integrity_check") as readonly {
        readonly integrity_check: string;
      }[];
      const damage = integrity.map((row) => row.integrity_check).filter((text) => text !== "ok");
      return damage.length > 0 ? damage : check(connection);
    } finally {
      connection.close();
    }
  });
}

/** The same for a caller who opens the database in another way. The folder is removed afterwards. */
export async function withImage(
  image: CrashImage,
  verify: (database: string) => readonly string[] | Promise<readonly string[]>,
): Promise<readonly string[]> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-image-"));
  try {
    return await verify(writeImage(image, directory));
  } catch (error) {
    return [`cannot be read: ${error instanceof Error ? error.message : String(error)}`];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
