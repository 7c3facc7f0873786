import { existsSync, readFileSync, statfsSync } from "node:fs";

const memory = "/dev/shm";
const bytesMin = 4 * 2 ** 30;

/**
 * A folder whose files are in memory, where there is one with room that
 * programs can be started from. Files there are flushed as anywhere, and no
 * disk makes that wait.
 */
export function memoryFolder(): string | undefined {
  if (!existsSync(memory)) return undefined;
  const { bavail, bsize } = statfsSync(memory);
  if (bavail * bsize < bytesMin) return undefined;
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
  const isClosed = mounts.some((line) => {
    const [, place, , options = ""] = line.split(" ");
    return place === memory && options.split(",").includes("noexec");
  });
  return isClosed ? undefined : memory;
}
