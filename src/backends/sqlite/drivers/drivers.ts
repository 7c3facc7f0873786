import { createRequire } from "node:module";
import { isAbsolute, join } from "node:path";
import { HoldfastError } from "../../../model/errors.ts";
import type { Warning } from "../../../sql/database.ts";
import type { SqlValue } from "../../../sql/statement.ts";
import { driverFlaw, refuseWrongNode } from "./driver-flaws.ts";
import type { DriverFlaw, PackageInfo } from "./driver-flaws.ts";
import { loadModule } from "./load-module.js";

export type DriverName = "better-sqlite3" | "node:sqlite";

/** The part of a driver that we use. It is small, so that another driver can be added. */
export interface RawStatement {
  run(...parameters: readonly SqlValue[]): {
    readonly changes: number | bigint;
  };
  get(...parameters: readonly SqlValue[]): object | undefined;
  all(...parameters: readonly SqlValue[]): object[];
}

export interface RawConnection {
  prepare(text: string): RawStatement;
  exec(text: string): void;
  readonly inTransaction: boolean;
  close(): void;
}

export interface Driver {
  readonly name: DriverName;
  /** The module that our threads require to get the same copy of SQLite. */
  readonly modulePath: string;
  /** Distinguishes two copies of a driver, since file locks are shared only within one copy. */
  readonly identity: object;
  open(path: string, options: { readonly readOnly: boolean }): RawConnection;
}

interface BetterSqlite3 {
  new (
    path: string,
    options: {
      readonly readonly: boolean;
      readonly fileMustExist: boolean;
      readonly timeout: number;
    },
  ): RawConnection;
}

/** The part of `require` that we use. */
interface Requires {
  (name: string): unknown;
  resolve(name: string): string;
}

interface NodeSqlite {
  readonly DatabaseSync: new (
    path: string,
    options: { readonly readOnly: boolean },
  ) => Omit<RawConnection, "inTransaction"> & {
    readonly isTransaction?: boolean;
  };
}

const realLoaders: Readonly<Record<DriverName, () => Driver>> = {
  "better-sqlite3": () => loadBetterSqlite3(createRequire(ownPlace())),
  "node:sqlite": loadNodeSqlite,
};

/**
 * The location of this code, so that drivers resolve as they do for its package or the app's
 * bundle. A CommonJS bundle has no `import.meta.url`.
 */
function ownPlace(): string {
  // An empty object in such a bundle; elsewhere not always a file URL.
  const url = (import.meta as Partial<ImportMeta>).url;
  if (url?.startsWith("file:") === true) return url;
  return typeof __filename === "string" && isAbsolute(__filename)
    ? __filename
    : join(process.cwd(), "app.js");
}

/**
 * Loads the requested driver, or the fastest one that works here. better-sqlite3 is about 1.4 times
 * as fast as node:sqlite. It is a package with a compiled addon, so an app installs it on purpose.
 * If it is installed and unusable, a warning says so once per process.
 */
export function loadDriver(
  wanted: DriverName | undefined,
  warn?: (warning: Warning) => void,
  loaders: Readonly<Record<DriverName, () => Driver>> = realLoaders,
): Driver {
  const flaws: (DriverFlaw & { readonly name: DriverName })[] = [];
  const names: readonly DriverName[] =
    wanted === undefined ? ["better-sqlite3", "node:sqlite"] : [wanted];
  for (const name of names) {
    try {
      const driver = loaders[name]();
      const unusable = flaws.find(({ isAbsent = false }) => !isAbsent);
      if (unusable !== undefined && warn !== undefined && !reported.has(loaders)) {
        reported.add(loaders);
        warn(driverUnusable(unusable));
      }
      return driver;
    } catch (error) {
      flaws.push({ name, ...driverFlaw(name, error) });
    }
  }
  const reasons = flaws.map(({ name, reason }) => `${name}: ${reason}`);
  const remedies = flaws.map(({ remedy }) => remedy);
  throw new HoldfastError(
    "DRIVER_MISSING",
    `No SQLite driver could be loaded (${reasons.join("; ")}). ${remedies.join(", or ")}.`,
    { reasons, node: process.version },
  );
}

/**
 * The loaders whose outcome was reported, so that a process is told once. The driver's own reason
 * changes when it is loaded again.
 */
const reported = new WeakSet<object>();

function driverUnusable({ reason, remedy }: DriverFlaw): Warning {
  return {
    code: "DRIVER_UNUSABLE",
    message:
      `The slower node:sqlite is used, because better-sqlite3 is installed and cannot be loaded: ${reason}. ` +
      `${remedy}, or set \`driver: "node:sqlite"\`.`,
  };
}

/** Loads better-sqlite3 as resolved from this module, or from another location in tests. */
export function loadBetterSqlite3(require: Requires): Driver {
  const modulePath = require.resolve("better-sqlite3");
  refuseWrongNode(require("better-sqlite3/package.json") as PackageInfo);
  const Database = require(modulePath) as BetterSqlite3;
  // The first connection loads the addon, so a mismatch shows only now.
  new Database(":memory:", options(false)).close();
  return {
    name: "better-sqlite3",
    modulePath,
    identity: Database,
    open: (path, { readOnly }) => new Database(path, options(readOnly)),
  };

  function options(readOnly: boolean): ConstructorParameters<BetterSqlite3>[1] {
    // The timeout is 0 because a busy wait inside SQLite would block the event loop.
    return { readonly: readOnly, fileMustExist: readOnly, timeout: 0 };
  }
}

function loadNodeSqlite(): Driver {
  const { DatabaseSync } = loadModule("node:sqlite") as NodeSqlite;
  return {
    name: "node:sqlite",
    modulePath: "node:sqlite",
    identity: DatabaseSync,
    open(path, { readOnly }) {
      const raw = new DatabaseSync(path, { readOnly });
      return {
        prepare: (text) => withPlainRows(raw.prepare(text)),
        exec: (text) => raw.exec(text),
        close: () => raw.close(),
        get inTransaction() {
          return raw.isTransaction ?? probeTransaction(raw);
        },
      };
    },
  };
}

/** Gives rows a prototype. Rows of node:sqlite have none, so they print and compare differently. */
function withPlainRows(statement: RawStatement): RawStatement {
  return {
    run: (...parameters) => statement.run(...parameters),
    get: (...parameters) => {
      const found = statement.get(...parameters);
      return found && { ...found };
    },
    all: (...parameters) => statement.all(...parameters).map((found) => ({ ...found })),
  };
}

/**
 * True inside a transaction. Node before 22.16 has no such property, but refuses a BEGIN inside a
 * transaction.
 */
function probeTransaction(raw: Pick<RawConnection, "exec">): boolean {
  try {
    raw.exec("BEGIN");
  } catch {
    return true;
  }
  raw.exec("ROLLBACK");
  return false;
}
