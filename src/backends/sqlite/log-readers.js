// Plain JavaScript, so that a thread can run it from source and from dist.
import { readFileSync, statSync } from "node:fs";

/** Where SQLite locks its read marks in the `-shm` file: WAL_READ_LOCK(0) to (4). */
const firstMark = 123;
const lastMark = 127;

/**
 * The processes that read a snapshot of the log at this moment, each as
 * `4711 (sqlite3)`. Linux tells who holds a lock; elsewhere, and across pid
 * namespaces, nobody is named. For people to look at, never to decide by.
 */
export function logReaders(path) {
  try {
    const { dev, ino } = statSync(`${path}-shm`, { bigint: true });
    const file = `${hex(major(dev))}:${hex(minor(dev))}:${ino}`;
    const pids = readFileSync("/proc/locks", "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(
        ([, , , , , lockedFile, first, last]) =>
          lockedFile === file &&
          Number(first) <= lastMark &&
          Number(last) >= firstMark,
      )
      .map(([, , , , pid]) => pid);
    return [...new Set(pids)].map(named);
  } catch {
    return [];
  }
}

function named(pid) {
  try {
    return `${pid} (${readFileSync(`/proc/${pid}/comm`, "utf8").trim()})`;
  } catch {
    return pid;
  }
}

// As the kernel packs a device's number for programs, and prints it in hex.
const major = (dev) => ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
const minor = (dev) => (dev & 0xffn) | ((dev >> 12n) & ~0xffn & 0xffffffffn);
const hex = (number) => number.toString(16).padStart(2, "0");
