import { spawnSync } from "node:child_process";
import { compiled } from "../compile-children.ts";
import { driverName } from "./place.ts";

/** Only root may become somebody else. */
export const isRoot: boolean = process.getuid?.() === 0;

/** Permissions mean nothing to root, so the open happens in a process without rights. */
export function openAsNobody(path: string, gid = 65_534): string {
  const child = spawnSync(
    process.execPath,
    [compiled("sqlite/open-and-report.ts"), path, driverName],
    { encoding: "utf8", ...(isRoot && { uid: 65_534, gid }) },
  );
  return child.stdout + child.stderr;
}
