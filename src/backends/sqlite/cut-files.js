// Plain JavaScript, run by the thread that flushes and by its caller. Notices
// that somebody cut off the end of a file that SQLite is using: SQLite does not,
// writes on behind the missing part, and copies the hole into the database file
// at the next checkpoint, which is then no database any more.
import { fstatSync, ftruncateSync, statSync } from "node:fs";
import { loggedPages, pageEndingAt, readGeneration } from "./log-file.js";

/** Others restart, empty and grow the log while it is looked at: then it is looked at again. */
const looks = 3;

/** Where SQLite leaves out a page of every file, for its locks. */
const lockingByte = 0x4000_0000;

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
export function noteLog({ fd, seen }, sizeAtFirst) {
  const before = Atomics.load(seen, log);
  for (let look = 0; look < looks; look += 1) {
    const size = look === 0 ? sizeAtFirst : fstatSync(fd).size;
    if (size === 0) return true;
    const header = readGeneration(fd);
    if (header === undefined) continue;
    const { frameBytes, generation } = header;
    const frames = Number(before & 0xffff_ffffn);
    const isWhole =
      generation !== before >> 32n ||
      frames === 0 ||
      pageEndingAt(fd, 32 + frames * frameBytes, frameBytes) !== 0;
    if (!isWhole) continue;
    const found = BigInt(Math.max(0, Math.floor((size - 32) / frameBytes)));
    Atomics.store(seen, log, (generation << 32n) | found);
    return true;
  }
  if (before !== 0n) closeHole(fd);
  return false;
}

/** What lies behind a hole is lost; without the hole, checkpoints fail and harm nothing. */
function closeHole(fd) {
  const header = readGeneration(fd);
  const { size } = fstatSync(fd);
  let end = 0;
  if (header !== undefined) {
    end = 32;
    while (
      end < size &&
      pageEndingAt(fd, end + header.frameBytes, header.frameBytes) !== 0
    )
      end += header.frameBytes;
  }
  try {
    if (end < size) ftruncateSync(fd, end);
  } catch {
    // Opened for reading: whoever writes will do it.
  }
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
