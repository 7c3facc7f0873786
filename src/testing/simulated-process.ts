import { HoldfastError } from "../model/errors.ts";
import type { OwnerId } from "../model/ids/prefixed-id.ts";
import { asWarning, runtimeContext } from "../open/open-holdfast.ts";
import { holdfastOver, type Holdfast } from "../runtime/client/holdfast.ts";
import type { Drain } from "../runtime/drain.ts";
import type { RunningBodies } from "../runtime/running-bodies.ts";
import type { RuntimeContext } from "../runtime/runtime-context.ts";
import { isToldByResult, type RuntimeEvent } from "../runtime/runtime-event.ts";
import type { Database, Liveness } from "../sql/database.ts";
import type { StoreOptions } from "../stores/context.ts";
import { overlaid } from "./overlaid.ts";
import type { ProcessClock, TestClock } from "./test-clock.ts";

/** State that all processes of a test share. */
export interface TestMachine {
  readonly database: Database;
  readonly clock: TestClock;
  readonly options: StoreOptions;
  readonly onEvent: ((event: RuntimeEvent) => void) | undefined;
  /** Owners of killed processes. Any process may take what they hold. */
  readonly killed: Set<OwnerId>;
}

interface ProcessOptions {
  /** Awaited before every write. */
  readonly beforeWrite: () => Promise<unknown> | undefined;
  /** Called after every write, before the process receives the answer. */
  readonly onWrite: () => Promise<void>;
  /** True when pending waits of the process keep the test's process alive. */
  readonly keepsAlive: boolean;
}

/**
 * A process of a test, with its own owner id in the database. Killing it takes effect at once: none
 * of its calls reaches the database, no answer reaches it, and its timers do not fire. User code
 * that is already running cannot be stopped, nor can a request that a dead process has already
 * sent. Its abort signal fires, and its return value is not recorded.
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
    const { clock, options, onEvent = asWarningOfTest } = machine;
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

  /** Resolves when the process is killed. */
  get end(): Promise<void> {
    return this.#life.ended;
  }

  kill(): void {
    this.#life.end();
    // Removes what it leaves in memory: listeners, and signals of code that still runs.
    void this.holdfast.close({ timeout: 0 }).catch(() => undefined);
  }
}

/** The access that a process has to the database and to time while it lives. */
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
      actsFor: database.owner,
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

  /** Stops a resource when the process ends, unless it was stopped before. */
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

/** A test awaits the runs that it lets fail: what it is told by their results is no warning. */
function asWarningOfTest(event: RuntimeEvent): void {
  if (!isToldByResult(event)) asWarning(event);
}
