import { expect } from "vitest";
import type { FunctionName } from "../../../src/executions.ts";
import type { Database } from "../../../src/kernel.ts";
import { create, finish, sendSignal } from "../execution/awaited-executions.ts";

/** Somebody elsewhere who waits for what a line says; see await-line.ts. */
export type StartWait = (line: string) => {
  readonly begun: Promise<unknown>;
  readonly found: Promise<unknown>;
};

interface Round {
  readonly line: string;
  readonly prepare: () => Promise<void>;
  readonly wake: () => Promise<void>;
  readonly expected: unknown;
}

/**
 * Lets somebody wait and wakes them, round after round: for a result, a
 * response and pending work in turn, and with the wake-up after, during and
 * before the beginning of the wait. A lost wake-up hangs its round.
 */
export async function wakeRounds(
  database: Database,
  rounds: number,
  startWait: StartWait,
): Promise<void> {
  for (let number = 0; number < rounds; number += 1) {
    const { line, prepare, wake, expected } = roundOf(database, number);
    await prepare();
    const order = Math.floor(number / 3) % 3;
    if (order === 2) await wake();
    const { begun, found } = startWait(line);
    if (order === 0) await begun;
    if (order < 2) await wake();
    expect({ line, found: await found }).toEqual({ line, found: expected });
  }
}

function roundOf(database: Database, number: number): Round {
  const id = `r${number}`;
  const prepare = (): Promise<void> => create(database, id);
  switch (number % 3) {
    case 0:
      return {
        line: `result ${id}`,
        prepare,
        wake: () => finish(database, id),
        expected: { kind: "completed", value: "done" },
      };
    case 1:
      return {
        line: `responses ${id}`,
        prepare,
        wake: () => database.write("signal", () => sendSignal(id, "one")),
        expected: [1],
      };
    default:
      return {
        line: `pending f${number}`,
        prepare: () => Promise.resolve(),
        wake: () => create(database, id, { function: `f${number}` as FunctionName }),
        expected: "due",
      };
  }
}
