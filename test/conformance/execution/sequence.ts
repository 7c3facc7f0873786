import { expect } from "vitest";
import type { Database } from "../../../src/sql/database.ts";
import { expectAgreement } from "../sound.ts";
import { codesOf } from "./codes.ts";
import { faultsIn } from "./faults.ts";
import type { Step } from "./steps.ts";
import { clearTables, readTables } from "./tables.ts";
import type { Tables } from "./tables.ts";
import { ExecutionModel, peek } from "./model.ts";
import type { Peek, Told } from "./model.ts";

/**
 * Takes the steps one after the other on empty tables. Whatever they are, the
 * tables hold together at the end, and when watched after every step; and a
 * call that was refused has left no trace.
 */
export async function runSequence(
  database: Database,
  sequence: readonly Step[],
  isWatched: boolean,
): Promise<{ readonly told: readonly Told[]; readonly tables: Tables }> {
  await clearTables(database);
  const model = new ExecutionModel(database);
  const told: Told[] = [];
  let tables = await readTables(database);
  let seen: Peek = tables;
  for (const step of sequence) {
    const answer = await model.take(step, seen);
    told.push(answer);
    if (answer.code !== undefined) expect(codesOf[step.call]).toContain(answer.code);
    if (isWatched) {
      const before = tables;
      tables = await readTables(database);
      if (answer.code !== undefined) expect(tables).toEqual(before);
      expect(faultsIn(tables, model.renewals)).toEqual([]);
      await expectAgreement(database);
      seen = tables;
    } else if (answer.isEventful && step.call !== "clock") seen = await peek(database);
  }
  tables = await readTables(database);
  expect(faultsIn(tables, model.renewals)).toEqual([]);
  await expectAgreement(database);
  // Long logs are read in parts.
  await expectAgreement(database, 3);
  return { told, tables };
}

/**
 * Takes the steps in groups whose calls are made at once, as their callers
 * knew the tables before. However they meet, each answers with what it may.
 */
export async function runAtOnce(
  database: Database,
  sequence: readonly Step[],
  groupSize: number,
): Promise<{ readonly told: readonly Told[]; readonly tables: Tables }> {
  await clearTables(database);
  const model = new ExecutionModel(database);
  const told: Told[] = [];
  for (let start = 0; start < sequence.length; start += groupSize) {
    const group = sequence.slice(start, start + groupSize);
    // Of a renewal nobody could tell afterwards between which others it came.
    for (const step of group.filter(({ call }) => call === "renew"))
      await model.take(step, await peek(database));
    const seen = await peek(database);
    const answers = await Promise.all(
      group.filter(({ call }) => call !== "renew").map((step) => model.take(step, seen)),
    );
    for (const { call, code } of answers)
      if (code !== undefined) expect(codesOf[call]).toContain(code);
    told.push(...answers);
  }
  const tables = await readTables(database);
  expect(faultsIn(tables, model.renewals)).toEqual([]);
  await expectAgreement(database);
  return { told, tables };
}

/** How often each call changed something, and how many events of each kind there were. */
export class Tally {
  readonly counts = new Map<string, number>();

  add({ told, tables }: Awaited<ReturnType<typeof runSequence>>): void {
    for (const { call, isEventful } of told) if (isEventful) this.#count(call);
    for (const { kind } of tables.events) this.#count(kind);
  }

  missing(names: readonly string[]): readonly string[] {
    return names.filter((name) => !this.counts.has(name));
  }

  #count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }
}
