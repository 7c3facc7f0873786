import type { Tree } from "./tree.ts";

interface Lockfile {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly dependencies?: Readonly<Record<string, string>>;
        readonly optionalDependencies?: Readonly<Record<string, string>>;
      }
    >
  >;
}

/**
 * `npm ci` refuses a lock without an entry for each dependency, those for
 * other platforms included; `npm install` leaves out the ones that it did not
 * find in the registry, and says nothing.
 */
export function lockedDependencies(tree: Tree): readonly string[] {
  const text = tree.get("package-lock.json");
  if (text === undefined) return ['package-lock.json is missing: run "npm install".'];
  const { packages } = JSON.parse(text) as Lockfile;
  const locked = new Set(Object.keys(packages).map((place) => place.split("node_modules/").at(-1)));
  const problems: string[] = [];
  for (const [place, entry] of Object.entries(packages)) {
    const wanted = { ...entry.dependencies, ...entry.optionalDependencies };
    for (const [name, version] of Object.entries(wanted))
      if (!locked.has(name))
        problems.push(
          `package-lock.json has no entry for ${name}@${version}, which ${place} depends on, so "npm ci" fails: use versions whose every platform is published, or add the entry with version, os and cpu.`,
        );
  }
  return problems;
}
