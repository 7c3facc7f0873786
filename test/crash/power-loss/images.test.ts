import { describe, expect, test } from "vitest";
import { seededRandom } from "../../depth.ts";
import { chooseCrashPoints, crashImages, crashModes } from "./images.ts";
import type { CrashMode } from "./images.ts";
import { folder, parseLog } from "./recording.ts";
import type { LogRecord, Recording } from "./recording.ts";

const pid = 1;
const file = 1;

function recordingOf(records: readonly LogRecord[], base = ""): Recording {
  const bytes = Buffer.from(base);
  return {
    directory: "",
    records,
    base: new Map(base === "" ? [] : [["", bytes]]),
    cutShort: false,
  };
}

function write(offset: number, text: string): LogRecord {
  return { kind: "write", pid, file, offset, bytes: Buffer.from(text) };
}

function begin(flush: number, flushed = file): LogRecord {
  return {
    kind: "flushBegin",
    pid,
    file: flushed,
    flush,
    isOnMainThread: false,
  };
}

function end(flush: number, flushed = file): LogRecord {
  return { kind: "flushEnd", pid, file: flushed, flush };
}

const open: LogRecord = { kind: "open", pid, file, name: "" };
const create: LogRecord = { kind: "create", pid, file, name: "" };

/** The different contents of the database after all records, over many seeds. "none" where it does not exist. */
function outcomes(recording: Recording, mode: CrashMode): ReadonlySet<string> {
  const seen = new Set<string>();
  for (let seed = 0; seed < 200; seed++) {
    const options = {
      crashPoints: [recording.records.length],
      mode,
      random: seededRandom(seed),
    };
    for (const image of crashImages(recording, options))
      seen.add(image.files.get("")?.toString() ?? "none");
  }
  return seen;
}

describe("a crash image", () => {
  test("holds what a flush covered, in every mode", () => {
    const recording = recordingOf([open, write(0, "new"), begin(1), end(1)], "old");
    for (const mode of crashModes) expect(outcomes(recording, mode)).toEqual(new Set(["new"]));
  });

  test("holds an unflushed write or not, by mode", () => {
    const recording = recordingOf([open, write(0, "new")], "old");
    expect(outcomes(recording, "dropped")).toEqual(new Set(["old"]));
    expect(outcomes(recording, "kept")).toEqual(new Set(["new"]));
    expect(outcomes(recording, "random")).toEqual(new Set(["old", "new"]));
  });

  test("does not count a write made during a flush as flushed", () => {
    const recording = recordingOf([open, write(0, "A"), begin(1), write(1, "B"), end(1)], "--");
    expect(outcomes(recording, "dropped")).toEqual(new Set(["A-"]));
  });

  test("does not count a flush that had not ended", () => {
    const recording = recordingOf([open, write(0, "new"), begin(1)], "old");
    expect(outcomes(recording, "dropped")).toEqual(new Set(["old"]));
  });

  test("reorders unflushed writes", () => {
    const recording = recordingOf([open, write(0, "A"), write(1, "B")], "--");
    expect(outcomes(recording, "random")).toEqual(new Set(["--", "A-", "-B", "AB"]));
  });

  test("tears an unflushed write at sector boundaries of the file", () => {
    const recording = recordingOf([open, write(510, "ABCD")], "-".repeat(514));
    const tails = [...outcomes(recording, "torn")].map((content) => content.slice(510));
    expect(new Set(tails)).toEqual(new Set(["----", "AB--", "--CD", "ABCD"]));
  });

  test("may have grown by zeros where an unflushed write at the end is lost", () => {
    const recording = recordingOf([open, write(3, "new")], "old");
    expect(outcomes(recording, "random")).toEqual(new Set(["old", "oldnew", "old\0\0\0"]));
  });

  test("holds an unflushed truncate or not, before later writes", () => {
    const recording = recordingOf(
      [open, { kind: "truncate", pid, file, size: 1 }, write(1, "N")],
      "old",
    );
    expect(outcomes(recording, "random")).toEqual(new Set(["old", "oNd", "o", "oN", "o\0"]));
  });

  test("has a created file only after a flush of the folder", () => {
    const created = [create, write(0, "new"), begin(1), end(1)];
    expect(outcomes(recordingOf(created), "dropped")).toEqual(new Set(["none"]));
    expect(outcomes(recordingOf(created), "random")).toEqual(new Set(["none", "new"]));
    const flushed = [...created, begin(2, folder), end(2, folder)];
    expect(outcomes(recordingOf(flushed), "random")).toEqual(new Set(["new"]));
  });

  test("may bring an unlinked file back until the folder is flushed", () => {
    const unlink: LogRecord = { kind: "unlink", pid, file, name: "" };
    const recreate: LogRecord = { kind: "create", pid, file: 2, name: "" };
    expect(outcomes(recordingOf([open, unlink, recreate], "old"), "random")).toEqual(
      new Set(["old", "none", ""]),
    );
    const flushed = [open, unlink, begin(1, folder), end(1, folder)];
    expect(outcomes(recordingOf(flushed, "old"), "random")).toEqual(new Set(["none"]));
  });

  test("has a linked name only after a flush of the folder, and then its bytes", () => {
    const temporary: LogRecord = { ...create, name: "-backup.tmp" };
    const linked: readonly LogRecord[] = [
      temporary,
      write(0, "new"),
      begin(1),
      end(1),
      { kind: "link", pid, file, name: "" },
      { kind: "unlink", pid, file, name: "-backup.tmp" },
    ];
    expect(outcomes(recordingOf(linked), "random")).toEqual(new Set(["none", "new"]));
    const flushed = [...linked, begin(2, folder), end(2, folder)];
    expect(outcomes(recordingOf(flushed), "dropped")).toEqual(new Set(["new"]));
  });

  test("writes to an unlinked file do not reach the new file of that name", () => {
    const unlink: LogRecord = { kind: "unlink", pid, file, name: "" };
    const recreate: LogRecord = { kind: "create", pid, file: 2, name: "" };
    const recording = recordingOf(
      [open, unlink, recreate, write(0, "new"), begin(1), end(1)],
      "old",
    );
    expect(outcomes(recording, "kept")).toEqual(new Set([""]));
  });

  test("does not hold what a failed flush lost, even after a later flush", () => {
    const fail: LogRecord = { kind: "flushFail", pid, file, flush: 1 };
    const failed = [open, write(0, "A"), begin(1), fail];
    const later = [...failed, write(4096, "B"), begin(2), end(2)];
    const base = "-".repeat(4097);
    expect(outcomes(recordingOf(later, base), "dropped")).toEqual(
      new Set(["-".repeat(4096) + "B"]),
    );
    // Another write to the same page makes it dirty again, so the next flush takes the lost bytes along.
    const samePage = [...failed, write(2, "B"), begin(2), end(2)];
    expect(outcomes(recordingOf(samePage, "---"), "dropped")).toEqual(new Set(["A-B"]));
    const meanwhile = [open, write(0, "A"), begin(1), write(2, "B"), fail, begin(2), end(2)];
    expect(outcomes(recordingOf(meanwhile, "---"), "dropped")).toEqual(new Set(["A-B"]));
  });

  test("is the same for the same seed", () => {
    const recording = recordingOf(
      [open, ...Array.from({ length: 20 }, (_, at) => write(at * 400, "x".repeat(700)))],
      "old",
    );
    const imagesOf = (seed: number): readonly string[] => {
      const random = seededRandom(seed);
      const crashPoints = chooseCrashPoints(recording, 8, random);
      return [...crashImages(recording, { crashPoints, mode: "torn", random })].map(
        (image) => `${image.crashPoint} ${image.files.get("")?.toString("base64")}`,
      );
    };
    expect(imagesOf(7)).toEqual(imagesOf(7));
    expect(imagesOf(7)).not.toEqual(imagesOf(8));
  });
});

describe("reading a log", () => {
  const mark = Buffer.alloc(24 + 2);
  mark.writeUInt32LE(9, 0);
  mark.writeUInt32LE(pid, 4);
  mark.writeUInt32LE(2, 12);
  mark.write("ok", 24);

  test("returns its records in order", () => {
    const records = parseLog(Buffer.concat([mark, mark]), { cutShort: false });
    expect(records).toEqual([
      { kind: "mark", pid, text: "ok" },
      { kind: "mark", pid, text: "ok" },
    ]);
  });

  test("accepts half a record at the end only where a process was killed in a call", () => {
    const log = Buffer.concat([mark, mark.subarray(0, 25)]);
    expect(parseLog(log, { cutShort: true })).toHaveLength(1);
    expect(() => parseLog(log, { cutShort: false })).toThrow("ends inside a record");
  });

  test("refuses what the shim does not model", () => {
    const unsupported = Buffer.from(mark);
    unsupported.writeUInt32LE(10, 0);
    expect(() => parseLog(unsupported, { cutShort: false })).toThrow("does not model: ok");
  });
});
