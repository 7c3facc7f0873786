import { HoldfastError } from "../model/errors.ts";
import type { OwnerId } from "../model/ids/prefixed-id.ts";
import { asWarning, runtimeContext } from "../open/open-holdfast.ts";
import { holdfastOver, type Holdfast } from "../runtime/client/holdfast.ts";
import type { Drain } from "../runtime/drain.ts";
import type { RunningBodies } from "../runtime/running-bodies.ts";
import type { RuntimeContext } from "../runtime/runtime-context.ts";
import type { RuntimeEvent } from "../runtime/runtime-event.ts";
import type { Database, Liveness } from "../sql/database.ts";
import type { StoreOptions } from "../stores/context.ts";
import { overlaid } from "./overlaid.ts";
import type { ProcessClock, TestClock } from "./test-clock.ts";

/** What all processes of a test share. */
export interface TestMachine {
  readonly database: Database;
  readonly clock: TestClock;
  readonly options: StoreOptions;
  readonly onEvent: ((event: RuntimeEvent) => void) | undefined;
  /** Those that were killed: what they hold is anybody's. */
  readonly killed: Set<OwnerId>;
}

interface ProcessOptions {
  /** Awaited before every write. */
  readonly beforeWrite: () => Promise<unknown> | undefined;
  /** Called behind every write, before the process hears of it. */
  readonly onWrite: () => Promise<void>;
  /** Whether what it waits for keeps the process of the test alive. */
  readonly keepsAlive: boolean;
}

/**
 * A process of a test, with its own place among the owners of the database.
 * Killed, it is as good as gone from one moment to the next: none of its calls
 * reaches the database, no answer reaches it, and its timers do not go off.
 * Code of the user's that is running cannot be stopped, as little as a request
 * of a dead process that is on its way; it is told by its signal, and what it
 * returns is not recorded.
 */
export class SimulatedProcess {
  readonly holdfast: Holdfast;
  readonly context: RuntimeContext;
  readonly #life: Life;

  private constructor(holdfast: Holdfast, context: RuntimeContext, life: Life) {
    this.holdfast = holdfast;
    this.context = context;
    this.#life = life;
  }

  static async start(
    machine: TestMachine,
    owner: OwnerId,
    how: ProcessOptions,
  ): Promise<SimulatedProcess> {
    const { clock, options, onEvent = asWarning } = machine;
    const life = new Life(machine, owner, how, clock.timers("process"));
    const background = clock.timers("background");
    const scheduling = clock.timers("schedules");
    life.onEnd.add(() => background.cancelAll());
    life.onEnd.add(() => scheduling.cancelAll());
    const context = await runtimeContext(
      life.database,
      { ...options, clock: life.clock },
      (event) => {
        if (!life.isOver) onEvent(event);
      },
      background,
      scheduling,
    );
    return new SimulatedProcess(
      holdfastOver(context, () => Promise.resolve()),
      context,
      life,
    );
  }

  get bodies(): RunningBodies {
    return this.context.bodies;
  }

  get drain(): Drain {
    return this.context.drain;
  }

  /** Resolves when it has been killed. */
  get end(): Promise<void> {
    return this.#life.ended;
  }

  kill(): void {
    this.#life.end();
    // What it leaves in memory: listeners, and signals of code that still runs.
    void this.holdfast.close({ timeout: 0 }).catch(() => undefined);
  }
}

/** The part of the database and of time that a process has while it lives. */
class Life {
  readonly database: Database;
  readonly clock: ProcessClock;
  readonly onEnd = new Set<() => void>();
  readonly ended: Promise<void>;
  isOver = false;
  readonly #machine: TestMachine;
  readonly #owner: OwnerId;
  readonly #options: ProcessOptions;

  constructor(machine: TestMachine, owner: OwnerId, options: ProcessOptions, clock: ProcessClock) {
    this.#machine = machine;
    this.#owner = owner;
    this.#options = options;
    this.clock = clock;
    this.onEnd.add(() => clock.cancelAll());
    this.ended = new Promise((resolve) => this.onEnd.add(resolve));
    this.database = this.#through(machine.database);
  }

  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#machine.killed.add(this.#owner);
    for (const end of this.onEnd) end();
  }

  #through(database: Database): Database {
    return overlaid(database, {
      owner: this.#owner,
      clock: this.clock,
      write: (...call: Parameters<Database["write"]>) =>
        this.#answered(async () => {
          await this.#options.beforeWrite();
          if (this.isOver) throw killed();
          const answer: unknown = await database.write(...call);
          await this.#options.onWrite();
          return answer;
        }),
      read: (...call: Parameters<Database["read"]>) => this.#answered(() => database.read(...call)),
      liveness: (owner: OwnerId): Promise<Liveness> =>
        Promise.resolve(this.#machine.killed.has(owner) ? "dead" : "alive"),
      subscribe: (...how: Parameters<Database["subscribe"]>) =>
        this.#until(database.subscribe(...how)),
      keepAlive: () =>
        this.#options.keepsAlive ? this.#until(database.keepAlive()) : () => undefined,
    } as Partial<Database>);
  }

  /** What is stopped at its end, if it has not been before. */
  #until(stop: () => void): () => void {
    if (this.isOver) stop();
    else this.onEnd.add(stop);
    return () => {
      this.onEnd.delete(stop);
      stop();
    };
  }

  async #answered<T>(call: () => Promise<T>): Promise<T> {
    if (this.isOver) throw killed();
    try {
      const answer = await call();
      if (!this.isOver) return answer;
    } catch (error) {
      if (!this.isOver) throw error;
    }
    throw killed();
  }
}

function killed(): HoldfastError {
  return new HoldfastError(
    "DATABASE_CLOSED",
    "This process of the test was killed; its calls reach nothing.",
  );
}
