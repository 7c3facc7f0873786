// Plain JavaScript, run by the thread that flushes and by its caller. Notices
// that somebody cut off the end of a file that SQLite is using: SQLite does not,
// writes on behind the missing part, and copies the hole into the database file
// at the next checkpoint, which is then no database any more.
import { fstatSync, readSync, statSync } from "node:fs";
import { isFrameWhole, loggedPages, readGeneration } from "./log-file.js";

/** Others restart, empty and grow the log while it is looked at: then it is looked at again. */
const looks = 3;

/** More than a batch writes, and still looked through in a moment. */
const framesPerLook = 256;

/** Where SQLite leaves out a page of every file, for its locks. */
const lockingByte = 0x4000_0000;

const head = Buffer.alloc(24);

const log = 0;
const databaseEnd = 1;

/**
 * What was last seen of both files, in memory that the flushing thread and its
 * caller share. Generation and length of the log are one number, so that they
 * belong together; both are read before a look and written after it, so they
 * never tell of more than is found.
 */
export function watchedSizes() {
  return new BigUint64Array(new SharedArrayBuffer(16));
}

/**
 * Within one generation, which its salts tell, the log only grows. What was
 * cut off is missed at the end, or, when SQLite has written behind it, is a
 * hole, in which no frame is. An empty log was emptied by a checkpoint, or cut
 * off: then the next commit leaves a hole where its header belongs.
 * @returns whether the log is whole.
 */
export function noteLog({ fd, seen }) {
  const before = Atomics.load(seen, log);
  for (let look = 0; look < looks; look += 1) {
    const header = readGeneration(fd);
    if (header === undefined) {
      if (fstatSync(fd).size === 0) return true;
      continue;
    }
    const { generation } = header;
    const frames = generation === before >> 32n ? Number(before & 0xffff_ffffn) : 0;
    const found = committedFrames(fd, header, frames);
    if (found === undefined) {
      // Begun anew meanwhile, which the header is the first to tell.
      if (readGeneration(fd)?.salts !== header.salts) look -= 1;
      continue;
    }
    // What another look has found since is newer.
    const next = (generation << 32n) | BigInt(found);
    Atomics.compareExchange(seen, log, before, next);
    return true;
  }
  return false;
}

/** Room for the frame that was seen last and those of a small transaction. */
const behind = Buffer.alloc(32_768);
/** How many frames the last look found: most transactions are like the one before. */
let usualFrames = 4;

/**
 * Counts only what nobody takes back: frames up to one that commits, with the
 * salts of the header. The rest of the file may be of an earlier generation or
 * of a transaction that is under way, and SQLite cuts that off by itself where
 * a connection has set journal_size_limit. One read shows the frame that was
 * seen last, which must be there still, and what a small transaction has added
 * to it; it is part of every flush.
 * @returns undefined when there is a hole instead.
 */
function committedFrames(fd, header, before) {
  const { frameBytes, salts } = header;
  const first = Math.max(1, before);
  const wanted = (usualFrames + 1) * frameBytes + head.length;
  const length = Math.min(behind.length, wanted);
  const read = readSync(fd, behind, 0, length, 32 + (first - 1) * frameBytes);
  if (before > 0 && (read < head.length || behind.readUInt32BE(0) === 0)) return undefined;
  let found = before;
  let number = first;
  for (let at = 0; at + head.length <= read; at += frameBytes, number += 1) {
    if (number === before) continue;
    if (behind.readBigUInt64BE(at + 8) !== salts) {
      if (found > before) usualFrames = found - before;
      return found;
    }
    if (behind.readUInt32BE(at + 4) !== 0) found = number;
  }
  // The file ends here, or it may be a large transaction.
  return read < length ? found : committedBehind(fd, header, found);
}

/**
 * The same where there may be more than one read shows. Usually the last frame
 * of the file is the one; otherwise the next ones are looked at, some at a time.
 */
function committedBehind(fd, header, before) {
  const { frameBytes } = header;
  const last = Math.floor((fstatSync(fd).size - 32) / frameBytes);
  if (last > before && frameAt(fd, last, header).commits) return last;
  let found = before;
  for (let next = before + 1; next <= before + framesPerLook; next += 1) {
    const frame = frameAt(fd, next, header);
    if (!frame.isOurs) break;
    if (frame.commits) found = next;
  }
  return found;
}

/** What the head of a frame tells; frames count from 1. */
function frameAt(fd, number, { frameBytes, salts }) {
  const at = 32 + (number - 1) * frameBytes;
  const isRead = number > 0 && readSync(fd, head, 0, head.length, at) === head.length;
  const isOurs = isRead && head.readBigUInt64BE(8) === salts;
  return {
    isOurs,
    commits: isOurs && head.readUInt32BE(4) !== 0,
    isEmpty: isRead && head.readUInt32BE(0) === 0,
  };
}

/**
 * Where the log ends before a hole, in bytes: the first place without a frame
 * that has a whole transaction of the same generation behind it. The frame
 * before it goes too when it was cut in two.
 * @param known What an earlier look found whole; it is not looked at again.
 * @returns undefined when there is no hole.
 */
export function findHole(fd, known = {}) {
  const { size } = fstatSync(fd);
  if (size === 0) return undefined;
  const header = readGeneration(fd);
  if (header === undefined) return isHeaderMissing(fd, size) ? 0 : undefined;
  const isKnown = known.salts === header.salts && frameAt(fd, known.frames, header).isOurs;
  let first = isKnown ? known.frames + 1 : 1;
  while (frameAt(fd, first, header).isOurs) first += 1;
  Object.assign(known, { salts: header.salts, frames: first - 1 });
  const next = frameAt(fd, first + 1, header);
  // An earlier generation goes on here, or the file ends.
  if (!frameAt(fd, first, header).isEmpty && !next.isEmpty && !next.isOurs) return undefined;
  const last = Math.floor((size - 32) / header.frameBytes);
  for (let number = last; number > first; number -= 1)
    if (frameAt(fd, number, header).commits) {
      const kept = isFrameWhole(fd, first - 1) ? first - 1 : first - 2;
      return 32 + Math.max(0, kept) * header.frameBytes;
    }
  return undefined;
}

/** A header is written before the first frame, so that nothing but a hole has none. */
function isHeaderMissing(fd, size) {
  const bytes = Buffer.alloc(32);
  return size > 32 && readSync(fd, bytes, 0, 32, 0) === 32 && bytes.every((b) => b === 0);
}

/**
 * A checkpoint makes the file smaller too, when the database has become
 * smaller. Then whatever pages the database has beyond its end are in the log.
 * @returns whether the database file is whole.
 */
export function noteDatabase({ fd, database, seen }, sizeAtFirst) {
  const before = Number(Atomics.load(seen, databaseEnd));
  for (let look = 0; look < looks; look += 1) {
    const size = look === 0 ? sizeAtFirst : statSync(database).size;
    if (size < before) {
      const logged = loggedPages(fd);
      // The log has just begun anew; the next commit in it will tell.
      if (logged.databasePages === undefined) return true;
      if (hasMissingPage(size, logged)) continue;
    }
    Atomics.store(seen, databaseEnd, BigInt(size));
    return true;
  }
  return false;
}

function hasMissingPage(size, { pages, databasePages, pageBytes }) {
  const lockingPage = lockingByte / pageBytes + 1;
  const first = Math.floor(size / pageBytes) + 1;
  for (let page = first; page <= databasePages; page += 1)
    if (!pages.has(page) && page !== lockingPage) return true;
  return false;
}
