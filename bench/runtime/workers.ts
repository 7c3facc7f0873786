import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { compiled } from "../../test/compile-children.ts";
import type { Told } from "./worker.ts";

/** A process that works on the runs of a database. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #waiting = new Set<(told: Told) => void>();

  constructor(place: string) {
    this.#child = fork(compiled("runtime/worker.ts", "bench"), [place], {
      execArgv: [],
    });
    this.#child.on("message", (told: Told) => {
      for (const hear of Array.from(this.#waiting)) hear(told);
    });
  }

  /** The next time it says this, of a run if one is named. */
  tells(what: Told["what"], run?: string): Promise<Told> {
    return new Promise((resolve) => {
      const hear = (told: Told): void => {
        if (told.what !== what || (run !== undefined && told.run !== run)) return;
        this.#waiting.delete(hear);
        resolve(told);
      };
      this.#waiting.add(hear);
    });
  }

  async kill(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }
}
