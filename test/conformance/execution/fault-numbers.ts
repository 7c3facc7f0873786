import { isDeepStrictEqual } from "node:util";
import { eventOf } from "../../../src/stores/execution/event-row.ts";
import type { Tables } from "./tables.ts";

/** The rows of one execution. */
export interface Story {
  readonly row: Tables["executions"][number];
  readonly events: Tables["events"];
  readonly responses: Tables["responses"];
  readonly delays: Tables["delays"];
}

/** Rows by what they belong to, in their order. */
export function grouped<T, K>(
  items: readonly T[],
  keyOf: (item: T) => K,
): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

/**
 * Versions from 0, responses from 1, questions and answers of each inbox from
 * 1: without a gap, but for what was pruned before a new start.
 */
export function numberFaults({ row, events, responses }: Story): readonly string[] {
  const faults: string[] = [];
  const dense = (what: string, numbers: readonly number[], from: number) => {
    if (numbers.some((number, index) => number !== from + index))
      faults.push(`${what} are ${numbers.join(" ")}`);
  };
  const { pruned_before: pruned } = row;
  const start = events.find(({ version }) => version === pruned);
  const prunedResponses = start?.responses ?? Number.NaN;
  const versions = events.map(({ version }) => version);
  if (versions[0] !== 0) faults.push("its creation is gone");
  dense(
    "versions",
    versions.filter((version) => version >= pruned),
    pruned,
  );
  if (versions.at(-1) !== row.version)
    faults.push(`version ${row.version} is not of its last event`);
  const seqs = responses.map(({ seq }) => seq);
  dense(
    "responses",
    seqs.filter((seq) => seq > prunedResponses),
    prunedResponses + 1,
  );
  if (row.responses !== Math.max(prunedResponses, seqs.at(-1) ?? 0))
    faults.push(`${row.responses} responses are ${seqs.join(" ")}`);
  let before = 0;
  for (const { version, responses: there, seen } of events) {
    if (there < before || there > row.responses)
      faults.push(`event ${version} had ${there} responses`);
    if (seen > there) faults.push(`event ${version} had seen ${seen} of ${there} responses`);
    before = there;
  }
  const asked = events.filter(({ ordinal }) => ordinal !== null);
  const isWhole = (inbox: string): boolean =>
    pruned === 0 || inbox.slice(1).startsWith(`${row.continuations}:`);
  for (const [inbox, questions] of grouped(asked, (event) => event.inbox ?? ""))
    // Signals that were read otherwise are passed over by those who take them by name.
    if (!inbox.startsWith("s:") && isWhole(inbox))
      dense(`questions to ${inbox}`, questions.map(ordinalOf), 1);
  for (const [inbox, answers] of grouped(responses, (one) => one.inbox))
    if (isWhole(inbox)) dense(`answers in ${inbox}`, answers.map(ordinalOf), 1);
  return faults;
}

function ordinalOf({ ordinal }: { readonly ordinal: number | null }): number {
  return ordinal ?? Number.NaN;
}

/**
 * Which run read each signal, told again from the new starts: in each, what it
 * did not leave. Of what was pruned the last start alone tells.
 */
export function readFaults({ row, events, responses }: Story): readonly string[] {
  const faults: string[] = [];
  const signals = responses.filter(({ kind }) => kind === "signal");
  const readBy = new Map<number, number>();
  const taken = new Set<number>();
  let starts = 0;
  for (const logged of events) {
    const { event, version } = eventOf(logged);
    if (event.kind === "signalReceived") {
      if (readBy.has(event.seq) || taken.has(event.seq))
        faults.push(`signal ${event.seq} was taken after it was read`);
      taken.add(event.seq);
    }
    if (event.kind !== "continued") continue;
    const left = event.left.flatMap(([a, b]) => Array.from({ length: b - a + 1 }, (_, n) => a + n));
    const there = signals.filter(({ seq }) => seq <= logged.responses);
    if (version <= row.pruned_before) {
      starts = event.continuation;
      for (const { seq, read_by: told } of there)
        if (!left.includes(seq)) readBy.set(seq, told ?? Number.NaN);
      continue;
    }
    starts += 1;
    if (event.continuation !== starts)
      faults.push(`its new start ${starts} is called ${event.continuation}`);
    const expected: number[] = [];
    for (const { seq } of there) {
      if (readBy.has(seq)) continue;
      const isNamed = event.unread?.some(([a, b]) => a <= seq && seq <= b) ?? true;
      if (!taken.has(seq) && (seq > event.seen || isNamed)) expected.push(seq);
      else readBy.set(seq, starts - 1);
    }
    if (!isDeepStrictEqual(left, expected))
      faults.push(`start ${starts} left ${left.join()}, not ${expected.join()}`);
  }
  for (const { seq, read_by: told } of responses)
    if (told !== (readBy.get(seq) ?? null)) faults.push(`response ${seq} is read by ${told}`);
  return faults;
}
