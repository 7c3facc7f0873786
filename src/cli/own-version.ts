import { readFileSync } from "node:fs";

/** The package lies two folders above, whether this runs from source or is bundled. */
export function ownVersion(): string {
  const file = new URL("../../package.json", import.meta.url);
  const { version } = JSON.parse(readFileSync(file, "utf8")) as {
    readonly version: string;
  };
  return version;
}
