/** The reason why a driver could not be loaded, and its remedy. */
export interface DriverFlaw {
  /** True for an optional package that is absent, which is no fault. */
  readonly isAbsent?: boolean;
  readonly reason: string;
  readonly remedy: string;
}

const rebuild =
  "Run `npm rebuild better-sqlite3` (with `--ignore-scripts=false` where npm is set to skip install scripts)";

/** The fields of a driver's package.json that we read. */
export interface PackageInfo {
  readonly version?: string;
  readonly engines?: { readonly node?: string };
}

/**
 * Refuses a driver version that requires a newer Node. Loading one crashes the process
 * (better-sqlite3 13 does on Node 20), and not every package manager checks it.
 */
export function refuseWrongNode(
  { version, engines }: PackageInfo,
  node: string = process.versions.node,
): void {
  const [, wanted] = /^>=\s*(\d+)/.exec(engines?.node ?? "") ?? [];
  if (wanted === undefined || Number.parseInt(node, 10) >= Number(wanted)) return;
  throw Object.assign(
    new Error(`version ${version} needs Node ${wanted} or newer, this is ${node}`),
    { code: "WRONG_NODE" },
  );
}

/** The first Node for which the newest better-sqlite3 is made. */
const newestNeedsNode = 22;

export function driverFlaw(
  driver: "better-sqlite3" | "node:sqlite",
  error: unknown,
  node: string = process.versions.node,
): DriverFlaw {
  const message = error instanceof Error ? error.message : String(error);
  if (driver === "node:sqlite")
    return {
      reason: firstLine(message),
      remedy: "use Node 22.13 or newer, which has node:sqlite built in",
    };
  const { code } = error as { readonly code?: unknown };
  const versions = [...message.matchAll(/NODE_MODULE_VERSION (\d+)/g)];
  if (code === "MODULE_NOT_FOUND" && namesPackage(firstLine(message)))
    return {
      isAbsent: true,
      reason: "not installed",
      remedy: `Run \`npm install better-sqlite3${Number.parseInt(node, 10) < newestNeedsNode ? "@12" : ""}\``,
    };
  if (code === "WRONG_NODE")
    return {
      reason: message,
      remedy: "Run `npm install better-sqlite3@12`",
    };
  if (/Could not locate the bindings file|\.node'/.test(message) && !versions[0])
    return {
      reason: "installed, but its addon was not built",
      remedy: rebuild,
    };
  if (code !== "ERR_DLOPEN_FAILED") return { reason: firstLine(message), remedy: rebuild };
  const [built, here] = versions.map(([, version]) => version);
  return {
    reason:
      built === undefined
        ? `its addon cannot be loaded here, possibly built for another system: ${firstLine(message)}`
        : `its addon was built for another Node (NODE_MODULE_VERSION ${built}, this one has ${here})`,
    remedy: rebuild,
  };
}

/** True for the package itself, in the words of any package manager, and not for a file of it. */
function namesPackage(text: string): boolean {
  return /better-sqlite3(?![\w/-])/.test(text) && !text.includes(".node");
}

function firstLine(message: string): string {
  return (message.split("\n")[0] ?? "").slice(0, 200);
}
