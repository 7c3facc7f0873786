// Plain JavaScript, run by the flushing thread and by its caller. Detects that another program cut
// off the end of a file that SQLite is using. SQLite does not notice: it writes on behind the
// missing part, and the next checkpoint copies the hole into the database file, which destroys the
// database.
import { fstatSync, readSync, statSync } from "node:fs";
import { isFrameWhole, loggedPages, readGeneration } from "./log-file.js";

/** Other processes restart, empty and grow the log while it is read; then it is read again. */
const looks = 3;

/** More frames than a batch writes, and still quick to read. */
const framesPerLook = 256;

/** The offset of the page that SQLite leaves unused in every file, for its locks. */
const lockingByte = 0x4000_0000;

const head = Buffer.alloc(24);

const log = 0;
const databaseEnd = 1;

/**
 * The last known sizes of both files, in memory that the flushing thread and its caller share.
 * Generation and length of the log share one number, so that they always match. Both are read
 * before a read and written after it, so they never exceed what exists.
 */
export function watchedSizes() {
  return new BigUint64Array(new SharedArrayBuffer(16));
}

/**
 * Records the log's length and checks that it is whole. Within one generation, which its salts
 * identify, the log only grows. A part that was cut off is missing at the end. If SQLite has
 * written behind it, it is a hole without frames. An empty log was emptied by a checkpoint, or cut
 * off; in the latter case the next commit leaves a hole in place of the header.
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
      // The log was restarted in between, which its header shows first.
      if (readGeneration(fd)?.salts !== header.salts) look -= 1;
      continue;
    }
    // A length that another look has stored since is newer.
    const next = (generation << 32n) | BigInt(found);
    Atomics.compareExchange(seen, log, before, next);
    return true;
  }
  return false;
}

/** Room for the last known frame and those of a small transaction. */
const behind = Buffer.alloc(32_768);
/** The frames found by the last look: most transactions resemble the one before. */
let usualFrames = 4;

/**
 * Counts only frames that are final: frames up to a commit, with the salts of the header. The rest
 * of the file may belong to an earlier generation or to an open transaction. SQLite itself cuts
 * that off where a connection has set journal_size_limit. One read covers the last known frame,
 * which must still be there, and the frames that a small transaction adds. This read is part of
 * every flush.
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
  // The file ends here, or the transaction may be large.
  return read < length ? found : committedBehind(fd, header, found);
}

/**
 * Counts final frames when there may be more than one read covers. Usually the last frame of the
 * file is the one. Otherwise the next frames are read, some at a time.
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

/** The contents of a frame's head. Frames count from 1. */
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
 * The offset in bytes where the log ends before a hole. A hole is the first place without a frame
 * that is followed by a whole transaction of the same generation. If the frame before it was cut in
 * two, it is dropped too.
 * @param known The part that an earlier look found whole, which is not read again.
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
  // An earlier generation continues here, or the file ends.
  if (!frameAt(fd, first, header).isEmpty && !next.isEmpty && !next.isOurs) return undefined;
  const last = Math.floor((size - 32) / header.frameBytes);
  for (let number = last; number > first; number -= 1)
    if (frameAt(fd, number, header).commits) {
      const kept = isFrameWhole(fd, first - 1) ? first - 1 : first - 2;
      return 32 + Math.max(0, kept) * header.frameBytes;
    }
  return undefined;
}

/**
 * True when the header is missing. It is written before the first frame, so only a hole has none.
 */
function isHeaderMissing(fd, size) {
  const bytes = Buffer.alloc(32);
  return size > 32 && readSync(fd, bytes, 0, 32, 0) === 32 && bytes.every((b) => b === 0);
}

/**
 * Checks that the database file is whole. A checkpoint also shortens the file when the database has
 * shrunk. Then every page of the database beyond the file's end is in the log.
 * @returns whether the database file is whole.
 */
export function noteDatabase({ fd, database, seen }, sizeAtFirst) {
  const before = Number(Atomics.load(seen, databaseEnd));
  for (let look = 0; look < looks; look += 1) {
    const size = look === 0 ? sizeAtFirst : statSync(database).size;
    if (size < before) {
      const logged = loggedPages(fd);
      // The log was just restarted; the check after the next commit covers it.
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
