// The recording made by shim.c, as typed records. A recording lives in one folder:
//   log     every recorded call, in the order in which it happened
//   state   the memory the recorded processes shared; its first words say whether the log is complete
//   base/   the database files as they were before the first recorded call (usually none)
//   live/   the database itself, as the recorded processes left it
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** What is appended to the database's path: "" is the database itself. */
export type FileName = "" | "-wal" | "-journal" | "-backup" | "-backup.tmp";

export const fileNames: readonly FileName[] = ["", "-wal", "-journal", "-backup", "-backup.tmp"];

/** The folder of the database, as the `file` of a flush. Other numbers are files: one per creation, never reused. */
export const folder = 0;

export type LogRecord =
  | {
      readonly kind: "create";
      readonly pid: number;
      readonly file: number;
      readonly name: FileName;
    }
  | {
      readonly kind: "open";
      readonly pid: number;
      readonly file: number;
      readonly name: FileName;
    }
  | {
      /** Another name for a file that has one. */
      readonly kind: "link";
      readonly pid: number;
      readonly file: number;
      readonly name: FileName;
    }
  | {
      readonly kind: "unlink";
      readonly pid: number;
      readonly file: number;
      readonly name: FileName;
    }
  | {
      readonly kind: "write";
      readonly pid: number;
      readonly file: number;
      readonly offset: number;
      readonly bytes: Buffer;
    }
  | {
      readonly kind: "truncate";
      readonly pid: number;
      readonly file: number;
      readonly size: number;
    }
  | {
      readonly kind: "flushBegin";
      readonly pid: number;
      readonly file: number;
      readonly flush: number;
      /** Whether it blocked the event loop of its process. */
      readonly isOnMainThread: boolean;
    }
  | {
      readonly kind: "flushEnd";
      readonly pid: number;
      readonly file: number;
      readonly flush: number;
    }
  | {
      readonly kind: "flushFail";
      readonly pid: number;
      readonly file: number;
      readonly flush: number;
    }
  | { readonly kind: "mark"; readonly pid: number; readonly text: string };

export interface Recording {
  readonly directory: string;
  readonly records: readonly LogRecord[];
  readonly base: ReadonlyMap<FileName, Buffer>;
  /** A process was killed from outside in the middle of a call: what follows is not in the log, what is in it is exact. */
  readonly cutShort: boolean;
}

export const databaseName = "app.db";

export function logPath(directory: string): string {
  return join(directory, "log");
}

export function statePath(directory: string): string {
  return join(directory, "state");
}

export function basePath(directory: string): string {
  return join(directory, "base");
}

/** The database file the recorded processes work on. */
export function livePath(directory: string): string {
  return join(directory, "live", databaseName);
}

/** Reads a recording again, for example one kept after a failure. */
export function readRecording(directory: string): Recording {
  const state = existsSync(statePath(directory))
    ? readFileSync(statePath(directory))
    : Buffer.alloc(12);
  const cutShort = state.readUInt32LE(4) !== 0 || state.readUInt32LE(8) !== 0;
  const base = new Map<FileName, Buffer>();
  for (const file of readdirSync(basePath(directory))) {
    base.set(
      asFileName(file.slice(databaseName.length)),
      readFileSync(join(basePath(directory), file)),
    );
  }
  return {
    directory,
    records: parseLog(readFileSync(logPath(directory)), { cutShort }),
    base,
    cutShort,
  };
}

/** The texts marked before the crash point, in order: what the recorded processes had told the world by then. */
export function marksBefore(recording: Recording, crashPoint: number): readonly string[] {
  const marks: string[] = [];
  for (const record of recording.records.slice(0, crashPoint)) {
    if (record.kind === "mark") marks.push(record.text);
  }
  return marks;
}

/** The same run on a system that nobody asked to flush the folder: names may be lost. */
export function withoutFolderFlushes(recording: Recording): Recording {
  const isOfFolder = (record: LogRecord): boolean => "flush" in record && record.file === folder;
  return {
    ...recording,
    records: recording.records.filter((record) => !isOfFolder(record)),
  };
}

/** How often a WAL was begun: each generation starts with its own header of 32 bytes. */
export function countWalGenerations(recording: Recording): number {
  const wals = new Set<number>();
  let generations = 0;
  for (const record of recording.records) {
    if ((record.kind === "create" || record.kind === "open") && record.name === "-wal")
      wals.add(record.file);
    const isHeader = record.kind === "write" && record.offset === 0 && record.bytes.length === 32;
    if (isHeader && wals.has(record.file)) generations += 1;
  }
  return generations;
}

const headerBytes = 24;

export function parseLog(
  log: Buffer,
  { cutShort }: { readonly cutShort: boolean },
): readonly LogRecord[] {
  const records: LogRecord[] = [];
  let at = 0;
  while (at < log.length) {
    const length = at + headerBytes <= log.length ? log.readUInt32LE(at + 12) : Infinity;
    const end = at + headerBytes + length;
    if (end > log.length) {
      if (cutShort) break;
      throw new Error(
        `The log ends inside a record at byte ${at}, although no recorded process died in a call.`,
      );
    }
    records.push(
      parseRecord(log.subarray(at, at + headerBytes), log.subarray(at + headerBytes, end)),
    );
    at = end;
  }
  return records;
}

function parseRecord(header: Buffer, payload: Buffer): LogRecord {
  const pid = header.readUInt32LE(4);
  const file = header.readUInt32LE(8);
  const position = Number(header.readBigUInt64LE(16));
  const text = (): string => payload.toString("utf8");
  const kind = header.readUInt32LE(0);
  switch (kind) {
    case 1:
      return { kind: "create", pid, file, name: asFileName(text()) };
    case 2:
      return { kind: "open", pid, file, name: asFileName(text()) };
    case 3:
      return { kind: "write", pid, file, offset: position, bytes: payload };
    case 4:
      return { kind: "truncate", pid, file, size: position };
    case 5:
      return {
        kind: "flushBegin",
        pid,
        file,
        flush: position,
        isOnMainThread: payload.length > 0,
      };
    case 6:
      return { kind: "flushEnd", pid, file, flush: position };
    case 7:
      return { kind: "flushFail", pid, file, flush: position };
    case 8:
      return { kind: "unlink", pid, file, name: asFileName(text()) };
    case 9:
      return { kind: "mark", pid, text: text() };
    case 10:
      throw new Error(
        `Process ${pid} did something the shim does not model: ${text()}. Teach shim.c or avoid it.`,
      );
    case 11:
      return { kind: "link", pid, file, name: asFileName(text()) };
    default:
      throw new Error(`Unknown record kind ${kind}: recording.ts and shim.c have drifted apart.`);
  }
}

function asFileName(text: string): FileName {
  const name = fileNames.find((known) => known === text);
  if (name === undefined) throw new Error(`"${text}" is not a file of the database.`);
  return name;
}
