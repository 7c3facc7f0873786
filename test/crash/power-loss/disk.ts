// A disk with a cache in front of it, fed with recorded calls: what is durable, what may have arrived without a flush.
// - A flush makes durable what was recorded before it began.
// - An unflushed write arrives whole, in part by sector of 512 bytes, or not at all; a lost one behind the end of the
//   file may still have moved the end (zeros), as with delayed allocation. An unflushed truncate arrives or not.
// - A creation, link or unlink is durable after a flush of the folder, which is all POSIX promises (SQLite does flush it);
//   before that, those of one name arrive up to any point.
// - A failed flush is never made good by a later one; see abandon().
//
// This is more hostile than a disk in one respect: a sector shared by two unflushed writes may hold the second
// without the first. Flushed bytes are never harmed (SQLite too assumes that a torn write leaves its neighbours alone).
import { Content } from "./content.ts";
import { databaseName, fileNames, folder } from "./recording.ts";
import type { FileName, LogRecord } from "./recording.ts";

/** Numbers below 1, such as `seededRandom` gives. */
export type Random = () => number;

export type CrashMode = "dropped" | "kept" | "random" | "torn";

interface DiskOptions {
  readonly mode: CrashMode;
  readonly random: Random;
}

interface WriteChange {
  readonly kind: "write";
  readonly index: number;
  readonly offset: number;
  readonly bytes: Buffer;
}

type Change =
  | WriteChange
  | {
      readonly kind: "truncate";
      readonly index: number;
      readonly size: number;
    };

interface FileOnDisk {
  /** What a completed flush covers. */
  readonly durable: Content;
  /** What readers see: every change applied. */
  readonly cached: Content;
  /** Changes since, in order. */
  pending: Change[];
  /** Pages whose writeback failed: clean in the cache, never arrived. Only another write makes them dirty again. */
  readonly abandoned: Set<number>;
}

interface Entry {
  readonly index: number;
  readonly name: FileName;
  readonly file: FileOnDisk | undefined;
}

const pageBytes = 4096;
const sectorBytes = 512;

export class Disk {
  readonly #options: DiskOptions;
  /** Files that existed before the recording, which gives them a number only when they are opened. */
  readonly #base = new Map<FileName, FileOnDisk>();
  readonly #files = new Map<number, FileOnDisk>();
  readonly #flushBegins = new Map<number, number>();
  readonly #entries = new Map<FileName, FileOnDisk>();
  #pendingEntries: Entry[] = [];

  constructor(base: ReadonlyMap<FileName, Buffer>, options: DiskOptions) {
    this.#options = options;
    for (const [name, bytes] of base) {
      const file = newFile(bytes);
      this.#base.set(name, file);
      this.#entries.set(name, file);
    }
  }

  apply(record: LogRecord, index: number): void {
    switch (record.kind) {
      case "create": {
        const file = newFile(Buffer.alloc(0));
        this.#files.set(record.file, file);
        this.#pendingEntries.push({ index, name: record.name, file });
        return;
      }
      case "open": {
        const file = this.#base.get(record.name);
        if (file === undefined)
          throw new Error(`"${databaseName}${record.name}" was made by an unrecorded process.`);
        this.#files.set(record.file, file);
        return;
      }
      case "link":
        this.#pendingEntries.push({
          index,
          name: record.name,
          file: this.#file(record.file),
        });
        return;
      case "unlink":
        this.#pendingEntries.push({
          index,
          name: record.name,
          file: undefined,
        });
        return;
      case "write":
        return changeFile(this.#file(record.file), { ...record, index });
      case "truncate":
        return changeFile(this.#file(record.file), { ...record, index });
      case "flushBegin":
        this.#flushBegins.set(record.flush, index);
        return;
      case "flushEnd":
        return this.#flushed(record.file, this.#flushBegin(record.flush));
      case "flushFail":
        if (record.file === folder) return;
        return abandon(this.#file(record.file), this.#flushBegin(record.flush), this.#options);
      case "mark":
        return;
    }
  }

  image(): ReadonlyMap<FileName, Buffer> {
    const files = new Map<FileName, Buffer>();
    for (const name of fileNames) {
      const file = this.#surviving(name);
      if (file === undefined) continue;
      const content = file.durable.copy();
      arrive(content, file.pending, this.#options);
      files.set(name, content.bytes());
    }
    return files;
  }

  /** The file a name leads to after the crash: the durable entry, then some of the later ones, in order. */
  #surviving(name: FileName): FileOnDisk | undefined {
    const pending = this.#pendingEntries.filter((entry) => entry.name === name);
    const { mode, random } = this.#options;
    const arrived =
      mode === "dropped"
        ? 0
        : mode === "kept"
          ? pending.length
          : Math.floor(random() * (pending.length + 1));
    const last = pending[arrived - 1];
    return last === undefined ? this.#entries.get(name) : last.file;
  }

  #flushed(file: number, begin: number): void {
    if (file === folder) {
      for (const entry of this.#pendingEntries) {
        if (entry.index > begin) continue;
        if (entry.file === undefined) this.#entries.delete(entry.name);
        else this.#entries.set(entry.name, entry.file);
      }
      this.#pendingEntries = this.#pendingEntries.filter((entry) => entry.index > begin);
    }
    if (file === folder) return;
    const flushed = this.#file(file);
    for (const change of flushed.pending) {
      if (change.index < begin) applyChange(flushed.durable, change);
    }
    flushed.pending = flushed.pending.filter((change) => change.index > begin);
  }

  #flushBegin(flush: number): number {
    const begin = this.#flushBegins.get(flush);
    if (begin === undefined) throw new Error(`Flush ${flush} ended without a beginning.`);
    return begin;
  }

  #file(number: number): FileOnDisk {
    const file = this.#files.get(number);
    if (file === undefined) throw new Error(`File ${number} is used before it is opened.`);
    return file;
  }
}

function newFile(bytes: Buffer): FileOnDisk {
  return {
    durable: new Content(bytes),
    cached: new Content(bytes),
    pending: [],
    abandoned: new Set(),
  };
}

function changeFile(file: FileOnDisk, change: Change): void {
  applyChange(file.cached, change);
  file.pending.push(change);
  revive(file, change);
}

function applyChange(content: Content, change: Change): void {
  if (change.kind === "write") content.write(change.offset, change.bytes);
  else content.truncate(change.size);
}

/** A write makes its whole pages dirty, so abandoned bytes on them will be written with it. */
function revive(file: FileOnDisk, change: Change): void {
  if (change.kind === "truncate" || file.abandoned.size === 0) return;
  for (const page of pagesOf(change)) {
    if (!file.abandoned.delete(page)) continue;
    const bytes = file.cached.read(page * pageBytes, pageBytes);
    file.pending.push({
      kind: "write",
      index: change.index,
      offset: page * pageBytes,
      bytes,
    });
  }
}

/**
 * A failed flush: what it should have written arrived or not, and no later flush will try again, although readers
 * still see it (Linux marks the pages clean and reports the error once). Pages written since are dirty anyway.
 */
function abandon(file: FileOnDisk, begin: number, options: DiskOptions): void {
  const tried = file.pending.filter((change) => change.index < begin);
  const later = file.pending.filter((change) => change.index > begin);
  arrive(file.durable, tried, options);
  for (const change of tried) {
    if (change.kind === "write") for (const page of pagesOf(change)) file.abandoned.add(page);
  }
  file.pending = later;
  // From the last one back: a page's cached bytes are those of its latest change.
  for (const change of later.toReversed()) revive(file, change);
}

function pagesOf(change: WriteChange): readonly number[] {
  const pages: number[] = [];
  const last = Math.floor((change.offset + change.bytes.length - 1) / pageBytes);
  for (let page = Math.floor(change.offset / pageBytes); page <= last; page++) pages.push(page);
  return pages;
}

/** Applies the changes that reached the disk without a flush. */
function arrive(content: Content, changes: readonly Change[], { mode, random }: DiskOptions): void {
  if (mode === "dropped") return;
  // One probability per image, so that images with few and with many survivors are both common.
  const survival = mode === "kept" ? 1 : random();
  for (const change of changes) {
    if (mode === "torn" && change.kind === "write" && random() < 0.5)
      arriveTorn(content, change, random);
    else if (random() < survival) applyChange(content, change);
    else if (change.kind === "write" && random() < 0.25)
      content.grow(change.offset + change.bytes.length);
  }
}

function arriveTorn(content: Content, change: WriteChange, random: Random): void {
  const end = change.offset + change.bytes.length;
  for (let start = change.offset; start < end;) {
    const next = Math.min(end, (Math.floor(start / sectorBytes) + 1) * sectorBytes);
    if (random() < 0.5)
      content.write(start, change.bytes.subarray(start - change.offset, next - change.offset));
    start = next;
  }
}
