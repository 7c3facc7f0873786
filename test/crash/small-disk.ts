import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";

const mount = (folder: string): string => `mount -t tmpfs -o size=2m none "${folder}"`;

/** Linux lets most users mount a disk of memory in a namespace of their own. */
export function mayMount(): boolean {
  return spawnSync("bash", ["-c", `unshare -rm ${mount("/mnt")}`]).status === 0;
}

/** What runs a process with a disk of two megabytes in the place of a new folder. */
export function underSmallDisk(folder: string): readonly string[] {
  mkdirSync(folder);
  return ["unshare", "-rm", "bash", "-c", `${mount(folder)} && exec "$0" "$@"`];
}
