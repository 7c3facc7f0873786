/** The transactions that the server counts as ended: all below `next` except the running ones. */
export interface Snapshot {
  readonly next: number;
  readonly running: ReadonlySet<number>;
}

/** Reads Postgres' text form `xmin:xmax:xip,xip,…`. */
export function snapshotOf(text: string): Snapshot {
  const [, xmax = "", xip = ""] = text.split(":");
  const running = xip === "" ? [] : xip.split(",").map(Number);
  return { next: Number(xmax), running: new Set(running) };
}

/** Above this number, transactions are not checked one by one. */
const endedMax = 10_000;

/**
 * The transactions that ended between two snapshots, or undefined when there are too many. Ids are
 * assigned densely, so every id in between is a transaction.
 */
export function endedBetween(before: Snapshot, after: Snapshot): readonly number[] | undefined {
  if (after.next - before.next > endedMax) return undefined;
  const ended: number[] = [];
  for (const tx of before.running) if (isOver(tx, after)) ended.push(tx);
  for (let tx = before.next; tx < after.next; tx += 1) if (isOver(tx, after)) ended.push(tx);
  return ended;
}

export function isOver(tx: number, { next, running }: Snapshot): boolean {
  return tx < next && !running.has(tx);
}
