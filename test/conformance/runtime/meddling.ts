import { HoldfastError } from "../../../src/model/errors.ts";
import type { Database, Liveness } from "../../../src/sql/database.ts";
import type { OwnerId } from "../../../src/model/ids/prefixed-id.ts";
import type { Operation } from "../../../src/sql/operation.ts";
import { gate } from "./waiting.ts";

/** What a call is done through; it is done when `go` is called. */
type Through = (go: () => Promise<unknown>, input: never) => Promise<unknown> | undefined;

/** A call that is held back until the test lets it go on. */
export interface Held {
  /** Resolves once the call is there: with its answer, if that is what is held. */
  readonly reached: Promise<void>;
  release(): void;
}

/** A database whose calls a test can hold back, and whose answers it can lose. */
export class Meddling {
  readonly database: Database;
  /** What it says of every process, when it is to say something else than the truth. */
  liveness: Liveness | undefined;
  readonly #through = new Map<string, Through>();
  readonly #listeners = new Set<Parameters<Database["subscribe"]>[0]>();

  constructor(database: Database) {
    const call =
      (kind: "write" | "read") =>
      (...given: Parameters<Database["write"]>): Promise<unknown> => {
        const [called, input] = given as [unknown, never];
        const go = (): Promise<unknown> => database[kind](...given);
        const through = this.#through.get(nameOf(called));
        return through?.(go, input) ?? go();
      };
    const own: Readonly<Record<string | symbol, unknown>> = {
      write: call("write"),
      read: call("read"),
      subscribe: (...given: Parameters<Database["subscribe"]>) => {
        const [listener] = given;
        this.#listeners.add(listener);
        const stop = database.subscribe(...given);
        return () => {
          this.#listeners.delete(listener);
          stop();
        };
      },
      liveness: async (...given: Parameters<Database["liveness"]>) =>
        this.liveness ?? database.liveness(...given),
    };
    this.database = new Proxy(database, {
      get(target, name) {
        const found: unknown = own[name] ?? Reflect.get(target, name, target);
        return typeof found === "function" ? (found.bind(target) as unknown) : found;
      },
    });
  }

  /** Has whoever listens hear of a death, as when it was proven. */
  tellDeath(owner: OwnerId): void {
    for (const listener of this.#listeners) listener({ kind: "death", owner });
  }

  /** Has calls of an operation done through something; undefined lets one pass. */
  on(operation: string, through: Through): void {
    this.#through.set(operation, through);
  }

  /** Holds back the next call of an operation, or the answer to it. */
  holdNext(
    operation: string,
    held: "call" | "answer",
    isMeant: (input: never) => boolean = () => true,
  ): Held {
    const reached = gate();
    const released = gate();
    this.on(operation, (go, input) => {
      if (!isMeant(input)) return undefined;
      this.#through.delete(operation);
      const hold = async (): Promise<void> => {
        reached.open();
        await released.opened;
      };
      return held === "call" ? hold().then(go) : go().then((answer) => hold().then(() => answer));
    });
    return { reached: reached.opened, release: () => released.open() };
  }

  /** Resolves when the worker that starts next has looked for work once; until then it starts nothing else. */
  async firstLook(): Promise<void> {
    const held = this.holdNext("lockPending", "answer");
    await held.reached;
    held.release();
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** The next calls of an operation are done, or are not, and nobody hears the answer. */
  loseNext(operation: string, times: number, isDone: boolean = true): void {
    let left = times;
    this.on(operation, async (go) => {
      if (left === 0) return go();
      left -= 1;
      if (isDone) await go();
      throw answerLost();
    });
  }
}

export function answerLost(): HoldfastError {
  return new HoldfastError("OUTCOME_UNKNOWN", "The answer was lost.");
}

function nameOf(called: unknown): string {
  return typeof called === "string" ? called : (called as Operation<never, unknown>).name;
}

/** Whether an append has an event of a kind. */
export function appends(
  kind: string,
): (input: { readonly events: readonly { readonly kind: string }[] }) => boolean {
  return ({ events }) => events.some((event) => event.kind === kind);
}
