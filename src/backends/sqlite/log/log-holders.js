// Plain JavaScript, shared by the thread of the log and those that start it.
import { readFileSync, realpathSync, statSync } from "node:fs";

/**
 * The bytes of the `-shm` file that SQLite locks: WAL_WRITE_LOCK, and the read marks
 * WAL_READ_LOCK(0) to (4).
 */
const writeLock = { first: 120, last: 120 };
const readMarks = { first: 123, last: 127 };

/**
 * The processes that read a snapshot of the log now, each as `4711 (sqlite3)`. Linux reports the
 * holders of a lock. Elsewhere, and across pid namespaces, the list is empty. It is for people to
 * read, never to decide by.
 */
export function logReaders(path) {
  return holders(path, readMarks).map((pid) => {
    const command = commandOf(pid);
    return command === undefined ? String(pid) : `${pid} (${command})`;
  });
}

/** The process that writes now, other than this one. Known wherever `logReaders` are. */
export function logWriter(path) {
  const pid = holders(path, writeLock).find((each) => each !== process.pid);
  if (pid === undefined) return undefined;
  return { pid, command: commandOf(pid), isStopped: isStopped(pid) };
}

function holders(path, { first, last }) {
  try {
    const { dev, ino } = statSync(`${realpathSync(path)}-shm`, {
      bigint: true,
    });
    const file = `${hex(major(dev))}:${hex(minor(dev))}:${ino}`;
    const pids = readFileSync("/proc/locks", "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(
        ([, , , , , lockedFile, from, to]) =>
          lockedFile === file && Number(from) <= last && Number(to) >= first,
      )
      .map(([, , , , pid]) => Number(pid));
    return [...new Set(pids)];
  } catch {
    return [];
  }
}

function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return undefined;
  }
}

/** True when stopped by a signal or a debugger. A paused container does not show here. */
function isStopped(pid) {
  try {
    return /^State:\s+[Tt]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

// Packs a device's number as the kernel does for programs, and prints it in hex.
const major = (dev) => ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
const minor = (dev) => (dev & 0xffn) | ((dev >> 12n) & ~0xffn & 0xffffffffn);
const hex = (number) => number.toString(16).padStart(2, "0");
