import { createRequire } from "node:module";
import type {
  DriverName,
  RawConnection,
  RawStatement,
} from "../../src/backends/sqlite/drivers.ts";

interface Patchable {
  prepare: (this: RawConnection, text: string) => RawStatement;
  exec: (this: RawConnection, text: string) => void;
}

/**
 * Lets a process kill itself before or after a certain statement, counted from
 * when it is armed. It patches the driver that Holdfast is going to load, so
 * that nothing in Holdfast knows of it.
 */
export class FaultPoints {
  #count = 0;
  #kill: { readonly at: number; readonly when: "before" | "after" } | undefined;

  constructor(driver: DriverName) {
    const require = createRequire(import.meta.url);
    const loaded: unknown = require(driver);
    const { prototype } = (
      driver === "better-sqlite3"
        ? loaded
        : (loaded as { readonly DatabaseSync: unknown }).DatabaseSync
    ) as { readonly prototype: Patchable };
    const { prepare, exec } = prototype;
    const around = <T>(run: () => T): T => this.#around(run);
    prototype.prepare = function (text: string): RawStatement {
      const statement = prepare.call(this, text);
      return {
        run: (...values) => around(() => statement.run(...values)),
        get: (...values) => around(() => statement.get(...values)),
        all: (...values) => around(() => statement.all(...values)),
      };
    };
    prototype.exec = function (text: string): void {
      around(() => exec.call(this, text));
    };
  }

  /** Statements since it was armed. */
  get count(): number {
    return this.#count;
  }

  arm(at: number, when: "before" | "after"): void {
    this.#count = 0;
    this.#kill = { at, when };
  }

  #around<T>(run: () => T): T {
    if (this.#kill === undefined) return run();
    this.#count += 1;
    const isHere = this.#count === this.#kill.at;
    if (isHere && this.#kill.when === "before") die();
    const answer = run();
    if (isHere && this.#kill.when === "after") die();
    return answer;
  }
}

function die(): never {
  process.kill(process.pid, "SIGKILL");
  // The signal is on its way; nothing more may be done until it comes.
  for (;;);
}
