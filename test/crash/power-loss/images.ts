// What the disk may hold if the power fails after the first k records. A crash image is everything that a completed
// flush covered, plus a choice for each later call:
//   dropped  nothing else arrived
//   kept     everything arrived, as after kill -9
//   random   each later call arrived whole or not at all, in any order
//   torn     as random, and a write may arrive in part, by sector of 512 bytes
// disk.ts says what each of these means for truncates, creations, unlinks and failed flushes.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Disk } from "./disk.ts";
import type { CrashMode, Random } from "./disk.ts";
import { databaseName } from "./recording.ts";
import type { FileName, Recording } from "./recording.ts";

export type { CrashMode };

export const crashModes: readonly CrashMode[] = ["dropped", "kept", "random", "torn"];

export interface CrashImage {
  /** The power failed after this many records. */
  readonly crashPoint: number;
  readonly mode: CrashMode;
  /** Names missing here do not exist on the disk. */
  readonly files: ReadonlyMap<FileName, Buffer>;
}

export interface CrashImageOptions {
  readonly crashPoints: readonly number[];
  readonly mode: CrashMode;
  readonly random: Random;
}

/** One image per crash point, in ascending order. The recording is walked once. */
export function* crashImages(
  recording: Recording,
  options: CrashImageOptions,
): Generator<CrashImage> {
  const { mode, random } = options;
  const disk = new Disk(recording.base, { mode, random });
  let at = 0;
  for (const crashPoint of options.crashPoints.toSorted((a, b) => a - b)) {
    for (; at < crashPoint; at++) {
      const record = recording.records[at];
      if (record === undefined)
        throw new Error(`Crash point ${crashPoint} lies behind the recording's end (${at}).`);
      disk.apply(record, at);
    }
    yield { crashPoint, mode, files: disk.image() };
  }
}

/** Writes the image into a new folder and returns the path of its database. There is no -shm: recovery makes one. */
export function writeImage(image: CrashImage, directory: string): string {
  mkdirSync(directory, { recursive: true });
  for (const [name, bytes] of image.files)
    writeFileSync(join(directory, databaseName + name), bytes);
  return join(directory, databaseName);
}

/**
 * Crash points: half of them anywhere, half right after a call that changes what is durable or what has been said
 * (flush begin and end, mark, truncate, create, unlink), where an error of order would show.
 */
export function chooseCrashPoints(
  recording: Recording,
  count: number,
  random: Random,
): readonly number[] {
  const turning: number[] = [];
  for (const [index, record] of recording.records.entries()) {
    if (record.kind !== "write") turning.push(index + 1);
  }
  const points = new Set<number>();
  const wanted = Math.min(count, recording.records.length);
  while (points.size < wanted) {
    const anywhere = 1 + Math.floor(random() * recording.records.length);
    points.add(
      random() < 0.5 ? anywhere : (turning[Math.floor(random() * turning.length)] ?? anywhere),
    );
  }
  return [...points].toSorted((a, b) => a - b);
}
