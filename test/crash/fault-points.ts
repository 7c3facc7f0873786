import { createRequire } from "node:module";
import { Socket } from "node:net";
import type { Connection, TransactionKind } from "../../src/backends/postgres/connection.ts";
import type {
  DriverName,
  RawConnection,
  RawStatement,
} from "../../src/backends/sqlite/drivers/drivers.ts";
import type { Statement } from "../../src/kernel.ts";

/** Where a process kills itself. */
export interface KillPoint {
  /** Counts every statement, BEGIN and COMMIT among them, or the COMMITs alone. */
  readonly of: "statement" | "commit";
  /** From 1 on. */
  readonly at: number;
  /** `during`: the COMMIT is sent and not answered. Of commits on a server alone. */
  readonly when: "before" | "during" | "after";
}

/**
 * Lets a process kill itself at a certain statement, counted from when it is
 * armed. It patches what Holdfast is going to use, so that nothing in Holdfast
 * knows of it.
 */
export class FaultPoints {
  /** Since it was armed. */
  readonly seen = { statement: 0, commit: 0 };
  #isArmed = false;
  #point: KillPoint | undefined;

  /** Without a point it only counts. */
  arm(point: KillPoint | undefined): void {
    this.seen.statement = 0;
    this.seen.commit = 0;
    this.#point = point;
    this.#isArmed = true;
  }

  disarm(): void {
    this.#isArmed = false;
  }

  /** Patches the driver of SQLite, which Holdfast loads later. */
  patchFile(driver: DriverName): void {
    const require = createRequire(import.meta.url);
    const loaded: unknown = require(driver);
    const { prototype } = (
      driver === "better-sqlite3"
        ? loaded
        : (loaded as { readonly DatabaseSync: unknown }).DatabaseSync
    ) as { readonly prototype: PatchableFile };
    const { prepare, exec } = prototype;
    const around = <T>(text: string, run: () => T): T => {
      const after = this.#before(/^COMMIT\b/.test(text));
      const answer = run();
      after();
      return answer;
    };
    prototype.prepare = function (text: string): RawStatement {
      const statement = prepare.call(this, text);
      return {
        run: (...values) => around(text, () => statement.run(...values)),
        get: (...values) => around(text, () => statement.get(...values)),
        all: (...values) => around(text, () => statement.all(...values)),
      };
    };
    prototype.exec = function (text: string): void {
      around(text, () => exec.call(this, text));
    };
  }

  /** Patches our own connections to a server; what is said outside of transactions does not count. */
  async patchServer(): Promise<void> {
    const loaded = await import("../../src/backends/postgres/connection.ts");
    const prototype = loaded.Connection.prototype as unknown as PatchableServer;
    const { begin, query, commit, rollback } = prototype;
    const begun = new WeakSet<Connection>();
    const around = async <T>(isCommit: boolean, run: () => Promise<T>): Promise<T> => {
      const after = this.#before(isCommit);
      const answer = await run();
      after();
      return answer;
    };
    prototype.begin = function (kind) {
      begun.add(this);
      return around(false, () => begin.call(this, kind));
    };
    prototype.query = function (statement) {
      return begun.has(this)
        ? around(false, () => query.call(this, statement))
        : query.call(this, statement);
    };
    prototype.commit = function () {
      begun.delete(this);
      return around(true, () => commit.call(this));
    };
    prototype.rollback = function () {
      begun.delete(this);
      return rollback.call(this);
    };
  }

  /** Counts a statement, and answers with what to do after it. */
  #before(isCommit: boolean): () => void {
    if (!this.#isArmed) return () => undefined;
    this.seen.statement += 1;
    if (isCommit) this.seen.commit += 1;
    if (this.#point === undefined) return () => undefined;
    const { of, at, when } = this.#point;
    const isHere = this.seen[of] === at && (of === "statement" || isCommit);
    if (!isHere) return () => undefined;
    if (when === "before") die();
    if (when === "during") dieOnceSent("COMMIT");
    return die;
  }
}

interface PatchableFile {
  prepare: (this: RawConnection, text: string) => RawStatement;
  exec: (this: RawConnection, text: string) => void;
}

interface PatchableServer {
  begin: (this: Connection, kind: TransactionKind) => Promise<void>;
  query: (this: Connection, statement: Statement) => Promise<unknown>;
  commit: (this: Connection) => Promise<unknown>;
  rollback: (this: Connection) => Promise<void>;
}

interface PatchableSocket {
  write: (this: Socket, ...given: unknown[]) => boolean;
}

/** What was written to a socket is the kernel's, and reaches the server. */
function dieOnceSent(word: string): void {
  const prototype = Socket.prototype as unknown as PatchableSocket;
  const { write } = prototype;
  prototype.write = function (...given) {
    const isAccepted = write.apply(this, given);
    if (Buffer.from(given[0] as Uint8Array).includes(word)) die();
    return isAccepted;
  };
}

function die(): never {
  process.kill(process.pid, "SIGKILL");
  // The signal is on its way; nothing more may be done until it comes.
  for (;;);
}
