import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { rows, sql, type Database } from "../../src/kernel.ts";
import { isDeep, seed } from "../depth.ts";
import { Child } from "./child.ts";
import {
  accounts,
  changesOf,
  createLedger,
  emptyLedger,
  filledMax,
  seats,
  startCents,
} from "./ledger.ts";
import type { Step } from "./ledger.ts";

/** A database that several processes have open. */
export interface LedgerPlace {
  readonly database: Database;
  /** What a child is told to open. */
  readonly told: string;
}

/** Bodies that read and then write, from several processes at once, on one database. */
export function ledgerSuite(
  inPlace: (body: (place: LedgerPlace) => Promise<void>) => Promise<void>,
): void {
  describe("bodies of two processes that read and then write", () => {
    test("give the same sums, and break no rule, whatever they do", () =>
      inPlace(async ({ database, told }) => {
        await database.write("tables", createLedger);
        const workers = await startedWorkers(told);
        await fc.assert(
          fc.asyncProperty(fc.tuple(steps, steps), async (work) => {
            await database.write("empty", emptyLedger);
            const done = await Promise.all(work.map((each, index) => doneBy(workers[index], each)));
            await expectSerial(
              database,
              work.flatMap((each, index) => each.filter((_, at) => done[index]?.[at] === true)),
            );
          }),
          { numRuns: isDeep ? 100 : 8, seed },
        );
        expect(await ended(workers)).toEqual([0, 0]);
      }));

    test("lose none of 200 increments", () =>
      inPlace(async ({ database, told }) => {
        await database.write("tables", createLedger);
        await database.write("empty", emptyLedger);
        const workers = await startedWorkers(told);
        const work: readonly Step[] = Array.from({ length: 100 }, () => ({
          kind: "raise",
          id: 1,
          by: 1,
        }));
        await Promise.all(workers.map((worker) => doneBy(worker, work)));
        expect((await stored(database)).cents.get(1)).toBe(startCents + 200);
        expect(await ended(workers)).toEqual([0, 0]);
      }));
  });
}

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("raise" as const),
    id: fc.constantFrom(...accounts),
    by: fc.integer({ min: 1, max: 9 }),
  }),
  fc
    .record({
      kind: fc.constant("move" as const),
      from: fc.constantFrom(...accounts),
      to: fc.constantFrom(...accounts),
      cents: fc.integer({ min: 1, max: 15 }),
    })
    .filter(({ from, to }) => from !== to),
  fc.record({
    kind: fc.constant("fill" as const),
    seat: fc.constantFrom(...seats),
  }),
);

const steps = fc.array(step, { minLength: 4, maxLength: 10 });

async function startedWorkers(told: string): Promise<readonly Child[]> {
  const workers = [1, 2].map(() => new Child("ledger-worker.ts", [told]));
  for (const worker of workers) onTestFinished(() => worker.kill());
  for (const worker of workers) await worker.reported(1);
  return workers;
}

async function doneBy(
  worker: Child | undefined,
  work: readonly Step[],
): Promise<readonly boolean[]> {
  if (worker === undefined) throw new Error("There is a worker for each part.");
  const lines = worker.lines.length;
  worker.tell(JSON.stringify(work));
  await worker.reported(lines + 1);
  expect(worker.process.exitCode).toBe(null);
  return JSON.parse(worker.lines[lines] ?? "[]") as readonly boolean[];
}

function ended(workers: readonly Child[]): Promise<readonly unknown[]> {
  for (const worker of workers) worker.tell("end");
  return Promise.all(workers.map((worker) => worker.ended));
}

interface Entry {
  readonly account: number;
  readonly version: number;
  readonly before: number;
  readonly after: number;
}

/** What is stored follows from the steps that were done, one after the other in some order. */
async function expectSerial(database: Database, done: readonly Step[]): Promise<void> {
  const expected = new Map<number, number>();
  for (const id of accounts) expected.set(id, startCents);
  for (const id of seats) expected.set(id, 0);
  const changes = done.flatMap(changesOf);
  for (const [id, by] of changes) expected.set(id, (expected.get(id) ?? 0) + by);
  const { cents, entries } = await stored(database);
  expect(cents).toEqual(expected);
  expect(entries).toHaveLength(changes.length);
  const last = new Map<number, Entry>();
  for (const entry of entries) {
    const before = last.get(entry.account);
    const start = accounts.includes(entry.account) ? startCents : 0;
    expect(entry.version).toBe((before?.version ?? 0) + 1);
    expect(entry.before).toBe(before?.after ?? start);
    expect(entry.after).toBeGreaterThanOrEqual(0);
    last.set(entry.account, entry);
  }
  const filled = seats.reduce((sum, seat) => sum + (cents.get(seat) ?? 0), 0);
  expect(filled).toBeLessThanOrEqual(filledMax);
  const asked = done.filter(({ kind }) => kind === "fill").length;
  expect(filled).toBe(asked);
}

async function stored(database: Database): Promise<{
  readonly cents: ReadonlyMap<number, number>;
  readonly entries: readonly Entry[];
}> {
  return database.read("stored", function* () {
    const found = yield* rows<{ id: number; cents: number }>(
      sql`SELECT id, cents FROM app_account ORDER BY id`,
    );
    const entries = yield* rows<Entry>(sql`
      SELECT account, version, before_cents AS before, after_cents AS after
      FROM app_entry ORDER BY account, version`);
    return {
      cents: new Map(found.map(({ id, cents }) => [id, cents])),
      entries,
    };
  });
}
