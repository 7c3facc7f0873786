import { integersOf } from "../../sql/dialect.ts";
import { rows } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { processesOfKeys } from "./process-row.ts";

/** How the batch is called with which an event wakes its session. */
export function wakeBatchId(process: number, sequence: number): string {
  return `wake_${process}_${sequence}`;
}

const wakeBatchForm = /^wake_(\d+)_(\d+)$/;

/**
 * Whether queued batches that are called like wakes are wakes of events that
 * are there and say so. Events of what was pruned are gone.
 */
export function* wakesOf(
  batches: readonly string[],
): Tx<(batch: string) => boolean> {
  const processes = new Set<number>();
  for (const batch of batches) {
    const [, process] = wakeBatchForm.exec(batch) ?? [];
    if (process !== undefined) processes.add(Number(process));
  }
  if (processes.size === 0) return () => true;
  const keys = [...processes];
  const known = yield* processesOfKeys(keys);
  const sequences = batches.flatMap((batch) => {
    const [, , sequence] = wakeBatchForm.exec(batch) ?? [];
    return sequence === undefined ? [] : Number(sequence);
  });
  const found = yield* rows<{
    readonly process: number;
    readonly sequence: number;
    readonly wake: string;
  }>(sql`
    SELECT process, sequence, wake FROM holdfast_process_event
    WHERE process IN ${integersOf(keys)} AND sequence IN ${integersOf(sequences)} AND wake IS NOT NULL`);
  const waking = new Map(
    found.map((event) => [
      wakeBatchId(event.process, event.sequence),
      event.wake,
    ]),
  );
  return (batch) => {
    const [, process] = wakeBatchForm.exec(batch) ?? [];
    if (process === undefined) return true;
    const woken = known.get(Number(process));
    if (woken === undefined) return false;
    return (
      woken.pruned_at !== null ||
      waking.get(batch)?.includes(JSON.stringify(batch)) === true
    );
  };
}
