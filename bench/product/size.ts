import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { packed } from "../../scripts/pack.ts";
import { inScratch } from "../scratch.ts";
import { bytesBeneath } from "./bytes.ts";

/** How large the package is, packed and unpacked, and which of its folders make it so. */
export function size(): Promise<object> {
  return inScratch((folder) => {
    const tarball = packed(folder);
    const home = join(folder, "unpacked");
    mkdirSync(home);
    execFileSync("tar", ["-xzf", tarball, "-C", home, "--strip=1"]);
    const folders = readdirSync(home, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => [name, bytesBeneath(join(home, name)).bytes] as const);
    return Promise.resolve({
      value: statSync(tarball).size,
      unit: "bytes of the tarball",
      unpacked: bytesBeneath(home),
      folders: Object.fromEntries(folders),
    });
  });
}
