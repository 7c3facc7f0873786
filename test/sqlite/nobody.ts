import { spawnSync } from "node:child_process";
import { compiled, nodeForEveryone } from "../compile-children.ts";
import { isRoot, temporaryFilesAreShared } from "../readable-by-all.ts";
import { driverName } from "./place.ts";

/** Whether there is a user without rights who can reach the files of tests. */
export const mayBeNobody: boolean = !isRoot || temporaryFilesAreShared;

/** Permissions mean nothing to root, so the open happens in a process without rights. */
export function openAsNobody(path: string, { gid = 65_534, readOnly = false } = {}): string {
  const child = spawnSync(
    nodeForEveryone(),
    [compiled("sqlite/open-and-report.ts"), path, driverName, readOnly ? "readOnly" : "write"],
    { encoding: "utf8", ...(isRoot && { uid: 65_534, gid }) },
  );
  return child.stdout + child.stderr;
}
