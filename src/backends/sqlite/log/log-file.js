// Plain JavaScript, shared by threads and the code that starts them. Reads the write-ahead log
// (SQLite's file format, chapter 4) beside SQLite. SQLite holds no locks on this file, so closing a
// descriptor of it drops no lock.
import { fstatSync, readSync } from "node:fs";

const headerBytes = 32;
const frameHeaderBytes = 24;
const magic = 0x377f0682;
const framesPerRead = 256;

/** The header of the log; undefined when the file is not a log. */
export function readLogHeader(fd) {
  const bytes = Buffer.alloc(headerBytes);
  if (readSync(fd, bytes, 0, headerBytes, 0) < headerBytes) return undefined;
  const pageBytes = bytes.readUInt32BE(8);
  // The lowest bit gives the byte order of the checksums.
  if ((bytes.readUInt32BE(0) & ~1) >>> 0 !== magic || !isPageSize(pageBytes)) return undefined;
  const isBigEndian = (bytes.readUInt32BE(0) & 1) === 1;
  const sum = checksum(bytes.subarray(0, 24), [0, 0], isBigEndian);
  return {
    pageBytes,
    frameBytes: pageBytes + frameHeaderBytes,
    isBigEndian,
    salts: bytes.readBigUInt64BE(16),
    checksum: storedChecksum(bytes),
    isValid: isSame(sum, storedChecksum(bytes)),
  };
}

const scratch = Buffer.alloc(24);

/**
 * The salts that distinguish one generation of the log from another, without checking the checksum,
 * because every flush reads them. The first salt counts generations.
 */
export function readGeneration(fd) {
  if (readSync(fd, scratch, 0, 24, 0) < 24) return undefined;
  if ((scratch.readUInt32BE(0) & ~1) >>> 0 !== magic) return undefined;
  return {
    frameBytes: scratch.readUInt32BE(8) + frameHeaderBytes,
    generation: BigInt(scratch.readUInt32BE(16)),
    salts: scratch.readBigUInt64BE(16),
  };
}

/**
 * Finds the place where the log was cut short. SQLite reads it up to the first frame with a wrong
 * checksum. It takes the rest for the remains of a transaction that was never acknowledged, as
 * after a crash. That is wrong when whole transactions of the same generation follow: a later
 * checksum builds on the one stored before it, so these transactions are proven valid. Remains of
 * rolled-back transactions have no commit frame.
 * @returns undefined when no committed transaction lies behind a bad frame.
 */
export function findCut(fd) {
  const header = readLogHeader(fd);
  if (header === undefined) return undefined;
  let salts = header.isValid ? header.salts : undefined;
  let last = header.checksum;
  let firstBad = header.isValid ? undefined : 0;
  let kept = 0;
  let commits = 0;
  let lastCommit = 0;
  for (const { index, frame } of framesOf(fd, header)) {
    salts ??= frame.readBigUInt64BE(8);
    const isOurs = frame.readBigUInt64BE(8) === salts;
    const isWhole =
      isOurs &&
      frame.readUInt32BE(0) !== 0 &&
      isSame(frameChecksum(frame, last, header), storedChecksum(frame));
    last = storedChecksum(frame);
    if (!isWhole) firstBad ??= index;
    else if (frame.readUInt32BE(4) === 0) continue;
    else if (firstBad === undefined) kept = index + 1;
    else {
      commits += 1;
      lastCommit = index + 1;
    }
  }
  if (commits === 0) return undefined;
  return { kept, bad: firstBad + 1, frames: lastCommit - kept, commits };
}

/**
 * The pages that the log holds beside the database file, and the number of pages of the database
 * after its last commit. Only salts are compared, because SQLite is using this log.
 */
export function loggedPages(fd) {
  const header = readLogHeader(fd);
  const pages = new Set();
  let databasePages;
  if (header?.isValid !== true) return { pages, databasePages };
  const head = Buffer.alloc(frameHeaderBytes);
  for (let at = headerBytes; ; at += header.frameBytes) {
    const isRead = readSync(fd, head, 0, head.length, at) === head.length;
    if (!isRead || head.readBigUInt64BE(8) !== header.salts) break;
    pages.add(head.readUInt32BE(0));
    if (head.readUInt32BE(4) !== 0) databasePages = head.readUInt32BE(4);
  }
  return { pages, databasePages, pageBytes: header.pageBytes };
}

/** True when the checksum of a frame is correct. Frames count from 1, and 0 is the header. */
export function isFrameWhole(fd, number) {
  const header = readLogHeader(fd);
  if (header?.isValid !== true || number < 1) return header?.isValid === true;
  const { frameBytes } = header;
  const at = headerBytes + (number - 1) * frameBytes;
  const frame = Buffer.from(new ArrayBuffer(frameBytes));
  if (readSync(fd, frame, 0, frameBytes, at) < frameBytes) return false;
  let before = header.checksum;
  if (number > 1) {
    const head = Buffer.alloc(frameHeaderBytes);
    readSync(fd, head, 0, frameHeaderBytes, at - frameBytes);
    before = storedChecksum(head);
  }
  return isSame(frameChecksum(frame, before, header), storedChecksum(frame));
}

function* framesOf(fd, { frameBytes }) {
  const count = Math.floor((fstatSync(fd).size - headerBytes) / frameBytes);
  const chunk = Buffer.from(new ArrayBuffer(frameBytes * framesPerRead));
  for (let first = 0; first < count; first += framesPerRead) {
    const at = headerBytes + first * frameBytes;
    const read = readSync(fd, chunk, 0, chunk.length, at);
    const frames = Math.floor(read / frameBytes);
    for (let index = 0; index < frames && first + index < count; index += 1)
      yield {
        index: first + index,
        frame: chunk.subarray(index * frameBytes, (index + 1) * frameBytes),
      };
    if (frames < framesPerRead) return;
  }
}

function frameChecksum(frame, before, { isBigEndian }) {
  const head = checksum(frame.subarray(0, 8), before, isBigEndian);
  return checksum(frame.subarray(frameHeaderBytes), head, isBigEndian);
}

function checksum(bytes, [first, second], isBigEndian) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; at += 8) {
    first = (first + view.getUint32(at, !isBigEndian) + second) >>> 0;
    second = (second + view.getUint32(at + 4, !isBigEndian) + first) >>> 0;
  }
  return [first, second];
}

/** The stored checksum, which is the last field of the header and of a frame's head alike. */
function storedChecksum(bytes) {
  const at = bytes.length === headerBytes ? 24 : 16;
  return [bytes.readUInt32BE(at), bytes.readUInt32BE(at + 4)];
}

function isSame([first, second], [otherFirst, otherSecond]) {
  return first === otherFirst && second === otherSecond;
}

function isPageSize(bytes) {
  return bytes >= 512 && bytes <= 65_536 && (bytes & (bytes - 1)) === 0;
}
