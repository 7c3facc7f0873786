import { manualClock, type ManualClock } from "../../../src/model/time/clock.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Database } from "../../../src/sql/database.ts";
import { rows } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { seededRandom } from "../../depth.ts";
import { T0 } from "../execution/fixture.ts";

/** Opens a runtime on a clock, through what stands before the database. */
type Another = (options: { clock: ManualClock }, before: Database) => Promise<Holdfast>;

/** The time between two moves of the clock: a busy worker may have looked for due work meanwhile. */
const tickMs = 50;
/** So long runs are started, and so long they may take. */
const startTicks = 25;
const ticksMax = 4_000;

/** A run that is due, and the places of its function that had come free by then. */
interface Due {
  readonly id: string;
  readonly turns: number;
  readonly dueAt: number;
  /** Its place among those of its function that are due, behind all that became due at the same instant. */
  readonly rank: number;
}

/** Counts the places that come free for each function, and tells which runs got theirs too late. */
class Bound {
  readonly #turns = new Map<string, number>();
  readonly #due = new Map<string, Due[]>();
  /** Runs that become due now, with their functions. */
  readonly #arriving = new Map<string, string>();
  readonly late: string[] = [];
  readonly #others: number;
  readonly #isJudged: (isNew: boolean) => boolean;
  readonly #begun = new Set<string>();

  /** The other places of the worker may come free while one is being used for a run. */
  constructor(others: number, isJudged: (isNew: boolean) => boolean) {
    this.#others = others;
    this.#isJudged = isJudged;
  }

  arrives(name: string, id: string): void {
    this.#arriving.set(id, name);
  }

  /**
   * The database knows of all that arrived. The order of runs that are due at one instant is their
   * ids in the database and their wakes in memory, so each may come after all the others: also
   * after those that arrive when some of them have a place.
   */
  arrived(dueAt: number): void {
    for (const name of new Set(this.#arriving.values())) {
      const ids = [...this.#arriving].filter(([, of]) => of === name).map(([id]) => id);
      const waiting = this.#due.get(name) ?? [];
      const rank = waiting.length + ids.length;
      const turns = this.#of(name);
      this.#due.set(name, [
        ...waiting.map((one) =>
          one.dueAt === dueAt ? { ...one, rank: one.rank + ids.length } : one,
        ),
        ...ids.map((id) => ({ id, rank, turns, dueAt })),
      ]);
    }
    this.#arriving.clear();
  }

  /** A run uses a place of its function. */
  uses(name: string, id: string): void {
    const turns = this.#of(name) + 1;
    this.#turns.set(name, turns);
    this.#arriving.delete(id);
    const isNew = !this.#begun.has(id);
    this.#begun.add(id);
    const waiting = this.#due.get(name) ?? [];
    const at = waiting.findIndex((one) => one.id === id);
    const due = waiting[at];
    if (due === undefined) return;
    waiting.splice(at, 1);
    if (this.#isJudged(isNew) && turns - due.turns > 4 * due.rank + this.#others)
      this.late.push(`${id}: number ${due.rank} began after ${turns - due.turns} places`);
  }

  get begun(): number {
    return this.#begun.size;
  }

  get waiting(): number {
    return [...this.#due.values()].reduce((sum, { length }) => sum + length, 0);
  }

  #of(name: string): number {
    return this.#turns.get(name) ?? 0;
  }
}

/** Where the runs of a load wait for their places. */
export interface Waits {
  readonly hotRunsMax: number;
  /** Each function has fewer places than the worker, which therefore looks in vain while they are taken. */
  readonly isLimited?: true;
}

/** Random loops of a few functions on 1 to 3 places: tells which got a place late, which never did, and whether more were locked than there are places. */
export async function lateRuns(
  start: number,
  { hotRunsMax, isLimited }: Waits,
  database: Database,
  another: Another,
): Promise<readonly string[]> {
  const random = seededRandom(start);
  const upTo = (most: number): number => 1 + Math.floor(random() * most);
  const concurrency = isLimited === true ? 1 + upTo(2) : upTo(3);
  const worker = new BusyWorker(concurrency, hotRunsMax, database);
  const holdfast = await worker.open(another);
  const functions = Array.from({ length: upTo(3) }, (_, n) =>
    worker.loop(`loop-${n}`, isLimited && { concurrency: upTo(concurrency - 1) }),
  );
  await holdfast.work(functions, { concurrency, hotRunsMax, lease: "1 day" });
  const results = new Set<Promise<unknown>>();
  for (let tick = 0; tick < startTicks || results.size > 0; tick += 1) {
    const { lockedMax, bound } = worker;
    if (lockedMax > concurrency || tick > ticksMax) {
      await holdfast.close({ timeout: 0 });
      return [
        `${lockedMax} were locked for ${concurrency} places`,
        `${bound.waiting} wait, ${results.size} have not ended`,
      ];
    }
    for (const [n, fn] of functions.entries()) {
      if (tick >= startTicks || random() < 0.6) continue;
      const id = `${start}-${tick}-${n}`;
      worker.bound.arrives(fn.name, id);
      const terms = { turns: upTo(12), workMs: tickMs * upTo(3), sleepMs: tickMs * upTo(2) };
      const run = await holdfast.start(fn, terms, { id });
      const result = run.result();
      results.add(result);
      void result.then(() => results.delete(result));
    }
    await worker.tick();
  }
  await holdfast.close();
  return worker.bound.late;
}

/** Starts many loops at once on few places, all waits in the database. Tells how many had begun when each ended. */
export async function burst(
  { count, concurrency }: { readonly count: number; readonly concurrency: number },
  database: Database,
  another: Another,
): Promise<readonly number[]> {
  const worker = new BusyWorker(concurrency, 0, database);
  const holdfast = await worker.open(another);
  const loop = worker.loop("loop");
  const terms = { turns: 4, workMs: tickMs, sleepMs: tickMs };
  const runs = await holdfast.startMany(
    loop,
    Array.from({ length: count }, () => ({ input: terms })),
  );
  await holdfast.work([loop], { concurrency, hotRunsMax: 0, lease: "1 day" });
  const begunAtEnds: number[] = [];
  for (const run of runs) void run.result().then(() => begunAtEnds.push(worker.bound.begun));
  for (let tick = 0; tick < ticksMax && begunAtEnds.length < count; tick += 1) await worker.tick();
  await holdfast.close();
  return begunAtEnds;
}

interface LoopTerms {
  readonly turns: number;
  readonly workMs: number;
  readonly sleepMs: number;
}

/** A worker whose places are asked for all the time, on a clock that is moved by the test. */
class BusyWorker {
  readonly bound: Bound;
  /** The most runs that were locked at once. */
  lockedMax = 0;
  readonly #clock = manualClock(T0);
  readonly #calls: Calls;
  readonly #database: Database;

  constructor(concurrency: number, hotRunsMax: number, database: Database) {
    // On Postgres a run in memory hears by a notification that it is due, for which the clock does not wait.
    const isHeardAtOnce = hotRunsMax === 0 || database.dialect === "sqlite";
    this.bound = new Bound(concurrency - 1, (isNew) => isNew || isHeardAtOnce);
    this.#database = database;
    this.#calls = new Calls(database);
  }

  open(another: Another): Promise<Holdfast> {
    return another({ clock: this.#clock }, this.#calls.database);
  }

  /** Works longer than it sleeps. What it does stands in steps, since its code runs again after each wait. */
  loop(name: string, limits: { readonly concurrency?: number } = {}) {
    return workflow(name, limits, async (ctx, { turns, workMs, sleepMs }: LoopTerms) => {
      for (let turn = 1; turn < turns; turn += 1) {
        await ctx.step("work", () => this.#work(name, ctx.id, workMs, sleepMs));
        await ctx.sleep(sleepMs);
      }
      await ctx.step("work", () => this.#work(name, ctx.id, workMs));
    });
  }

  async #work(name: string, id: string, workMs: number, sleepMs?: number): Promise<void> {
    const clock = this.#clock;
    this.bound.uses(name, id);
    await new Promise<void>((resolve) => void clock.wakeAt(clock.now() + workMs, resolve));
    if (sleepMs === undefined) return;
    clock.wakeAt(clock.now() + sleepMs, () => this.bound.arrives(name, id));
  }

  async tick(): Promise<void> {
    await this.#calls.answered();
    this.bound.arrived(this.#clock.now());
    const locked = await this.#database.read("locked", () =>
      rows(sql`SELECT id FROM holdfast_execution WHERE state = 'locked'`),
    );
    this.lockedMax = Math.max(this.lockedMax, locked.length);
    this.#clock.advance(tickMs);
    await this.#calls.answered();
    this.bound.arrived(this.#clock.now());
  }
}

/** A database that tells when all calls of it have been answered. */
class Calls {
  readonly database: Database;
  readonly #open = new Set<Promise<unknown>>();

  constructor(database: Database) {
    const counted =
      (kind: "write" | "read") =>
      async (...given: Parameters<Database["write"]>): Promise<unknown> => {
        const call = database[kind](...given);
        this.#open.add(call);
        try {
          return await call;
        } finally {
          this.#open.delete(call);
        }
      };
    const own: Readonly<Record<string | symbol, unknown>> = {
      write: counted("write"),
      read: counted("read"),
    };
    this.database = new Proxy(database, {
      get(target, name) {
        const found: unknown = own[name] ?? Reflect.get(target, name, target);
        return typeof found === "function" ? (found.bind(target) as unknown) : found;
      },
    });
  }

  /** Resolves when nothing has been asked for some turns of the event loop. */
  async answered(): Promise<void> {
    for (let quiet = 0; quiet < 8; quiet += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#open.size === 0) continue;
      // Asking in a loop would keep the processor from who answers.
      await Promise.allSettled(this.#open);
      quiet = 0;
    }
  }
}
