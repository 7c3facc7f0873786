import { createRequire } from "node:module";
import { isAbsolute, join } from "node:path";
import { HoldfastError } from "../../../model/errors.ts";
import type { SqlValue } from "../../../sql/statement.ts";
import { driverFlaw, refuseWrongNode } from "./driver-flaws.ts";
import type { PackageInfo } from "./driver-flaws.ts";

export type DriverName = "better-sqlite3" | "node:sqlite";

/** What we use of a driver: a page of code, so that another one can be added. */
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
  /** What a thread of ours requires to get the very same copy of SQLite. */
  readonly modulePath: string;
  /** Tells two copies of a driver apart: file locks are shared only within one. */
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

/** What we use of a `require`. */
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
 * Where this code is, so that drivers are found as its package or the bundle of
 * an app would find them. A bundle of CommonJS has no `import.meta.url`.
 */
function ownPlace(): string {
  // An empty object in such a bundle, and not always a file elsewhere.
  const url = (import.meta as Partial<ImportMeta>).url;
  if (url?.startsWith("file:") === true) return url;
  return typeof __filename === "string" && isAbsolute(__filename)
    ? __filename
    : join(process.cwd(), "app.js");
}

/**
 * Loads the wanted driver, or the fastest one that works here: better-sqlite3
 * is about 1.4 times as fast as node:sqlite and needs a compiled addon.
 */
export function loadDriver(
  wanted: DriverName | undefined,
  loaders: Readonly<Record<DriverName, () => Driver>> = realLoaders,
): Driver {
  const reasons: string[] = [];
  const remedies: string[] = [];
  const names: readonly DriverName[] =
    wanted === undefined ? ["better-sqlite3", "node:sqlite"] : [wanted];
  for (const name of names) {
    try {
      return loaders[name]();
    } catch (error) {
      const { reason, remedy } = driverFlaw(name, error);
      reasons.push(`${name}: ${reason}`);
      remedies.push(remedy);
    }
  }
  throw new HoldfastError(
    "DRIVER_MISSING",
    `No SQLite driver could be loaded (${reasons.join("; ")}). ${remedies.join(", or ")}.`,
    { reasons, node: process.version },
  );
}

/** Loads it as seen from a module of ours, or from another place for tests. */
export function loadBetterSqlite3(require: Requires): Driver {
  const modulePath = require.resolve("better-sqlite3");
  refuseWrongNode(require("better-sqlite3/package.json") as PackageInfo);
  const Database = require(modulePath) as BetterSqlite3;
  // The addon is loaded by the first connection: a mismatch shows only now.
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
  const { DatabaseSync } = createRequire(ownPlace())("node:sqlite") as NodeSqlite;
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

/** node:sqlite makes rows without a prototype, which print and compare differently. */
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

/** Node before 22.16 does not tell; a BEGIN inside a transaction is refused. */
function probeTransaction(raw: Pick<RawConnection, "exec">): boolean {
  try {
    raw.exec("BEGIN");
  } catch {
    return true;
  }
  raw.exec("ROLLBACK");
  return false;
}
