import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import type { Database } from "../../src/sql/database.ts";
import { executions } from "../../src/stores/execution/executions.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { appendSteps, lockedTargets, throughStore } from "./load.ts";
import type { Target } from "./load.ts";
import { insertExecutions, numbers, seeded } from "./seed.ts";
import { size } from "../sizes.ts";

const eventsEach = 40;
const callers = size(250, 10);
const appendsEach = size(40, 4);
const rounds = size(5, 1);
const rowsMax = size(10_000_000, 10_000);

/** Does an append cost more in a log of ten million rows than in one of ten thousand? */
export function growth(): Promise<object> {
  return inScratch(async (folder) => {
    const small = await Grown.open(join(folder, "small.db"), 10_000);
    const large = await Grown.open(join(folder, "large.db"), rowsMax);
    for (let round = 0; round < rounds; round += 1) {
      await small.measure(round);
      await large.measure(round);
    }
    await Promise.all([small.close(), large.close()]);
    const cost = (kind: "fresh" | "old"): number =>
      rounded(median(small[kind]) / median(large[kind]));
    return {
      value: Math.round(median(large.fresh)),
      unit: "appends/s to fresh executions at 10,000,000 rows",
      ceiling: Math.round(median(small.fresh)),
      ratio: cost("fresh"),
      oldPerSecond: Math.round(median(large.old)),
      oldPerSecondAtTenThousand: Math.round(median(small.old)),
      oldRatio: cost("old"),
      rounds,
      note: "ratios are costs at 10,000,000 against 10,000 rows; aims ≤ 1.5 fresh, ≤ 3 old",
    };
  });
}

/** A database that begins with so many rows, and its figures in appends per second. */
class Grown {
  readonly fresh: number[] = [];
  readonly old: number[] = [];
  readonly #database: Database;
  readonly #targets: readonly Target[];

  static async open(path: string, rows: number): Promise<Grown> {
    const count = rows / eventsEach;
    await seeded(path, [
      insertExecutions(count, eventsEach - 1, "locked"),
      `${numbers(rows)}
      INSERT INTO holdfast_execution_event (execution, version, at, responses, kind, call, seen, body, payload)
      SELECT (i - 1) / ${eventsEach} + 1, (i - 1) % ${eventsEach}, i, 0, 'stepFinished', 7, 0,
        '{"name":"charge the card","inputHash":null,"outcome":"completed"}', '"${"x".repeat(80)}"'
      FROM numbers`,
    ]);
    return new Grown(await openSqlite(path), shuffledTargets(count));
  }

  private constructor(database: Database, targets: readonly Target[]) {
    this.#database = database;
    this.#targets = targets;
  }

  async measure(round: number): Promise<void> {
    const log = executions(this.#database);
    const append = throughStore(log);
    const fresh = await lockedTargets(log, callers, `fresh-${round}`);
    const shares = fresh.map((one) => [one]);
    this.fresh.push(await appendSteps(append, shares, appendsEach));
    this.old.push(await appendToOld(append, this.#targets, round));
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

/** As many appends as to the fresh ones, each to another execution as long as there are others. */
function appendToOld(
  append: ReturnType<typeof throughStore>,
  old: readonly Target[],
  round: number,
): Promise<number> {
  const wanted = callers * appendsEach;
  const from = (round * wanted) % Math.max(old.length - wanted, 1);
  const chosen = old.slice(from, from + wanted);
  const perCaller = chosen.length / callers;
  const shares = Array.from({ length: callers }, (_, caller) =>
    chosen.slice(caller * perCaller, (caller + 1) * perCaller),
  );
  return appendSteps(append, shares, appendsEach / perCaller);
}

/** In an order that jumps about: neighbours in the list are far apart in the table. */
function shuffledTargets(count: number): Target[] {
  const step = 7_919;
  return Array.from({ length: count }, (_, index) => {
    const key = ((index * step) % count) + 1;
    return { id: `old-${key}`, key, nextVersion: eventsEach };
  });
}
