import { readFileSync } from "node:fs";

/** The version of the package, which is two folders up both in the source and in the build. */
export function ownVersion(): string {
  const file = new URL("../../package.json", import.meta.url);
  const { version } = JSON.parse(readFileSync(file, "utf8")) as {
    readonly version: string;
  };
  return version;
}
