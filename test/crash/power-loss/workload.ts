// The processes of workload.mjs and what must be true of the database they write.
import { fileURLToPath } from "node:url";
import { isDeep, seed } from "../../depth.ts";
import type { RecordedProcess } from "./record.ts";
import type { Recording } from "./recording.ts";
import type { Connection } from "./verify.ts";

/** Calls per writer and generation. */
export const calls: number = isDeep ? 400 : 120;

const script = fileURLToPath(new URL("./workload.mjs", import.meta.url));

type Release = "flushed" | "unflushed";

export const setUp: RecordedProcess = { script, args: ["set-up"] };

export function writer(name: "a" | "b", order: number, acknowledge: Release): RecordedProcess {
  return {
    script,
    args: ["write", name, String(calls), String(seed + order), acknowledge],
    flushDelayMs: 1,
  };
}

export function checkpointer(order: number, observe: Release): RecordedProcess {
  return {
    script,
    args: ["checkpoint", String(seed + order), observe],
    background: true,
    flushDelayMs: 1,
  };
}

export interface Facts {
  readonly acknowledged?: Readonly<Record<string, number>>;
  readonly observed?: Readonly<Record<string, number>>;
  readonly failed?: Readonly<Record<string, number>>;
}

/** The last call of each writer that somebody was told about. */
function promised(marks: readonly string[]): ReadonlyMap<string, number> {
  const last = new Map<string, number>();
  for (const mark of marks) {
    const facts = JSON.parse(mark) as Facts;
    for (const [name, n] of Object.entries({
      ...facts.acknowledged,
      ...facts.observed,
    })) {
      last.set(name, Math.max(n, last.get(name) ?? 0));
    }
  }
  return last;
}

/** Every promised call is there; each call is whole; the calls of both writers are a prefix of the order of commits. */
export function checkCalls(connection: Connection, marks: readonly string[]): readonly string[] {
  const expected = promised(marks);
  const tables = connection
    .prepare("SELECT count(*) AS n FROM sqlite_master WHERE type = 'table'")
    .get() as { n: number };
  if (tables.n === 0) return expected.size === 0 ? [] : ["lost: the tables"];
  const problems: string[] = [];
  const order = connection
    .prepare("SELECT seq, writer, n FROM call ORDER BY seq")
    .all() as CallRow[];
  if (order.some((row, index) => row.seq !== index + 1))
    problems.push("torn: the order of commits has a gap");
  const totals = connection.prepare("SELECT writer, calls FROM total").all() as {
    writer: string;
    calls: number;
  }[];
  for (const total of totals) {
    const numbers = order.filter((row) => row.writer === total.writer).map((row) => row.n);
    const payloads = connection
      .prepare("SELECT n, bytes FROM payload WHERE writer = ? ORDER BY n")
      .all(total.writer);
    const upToTotal = Array.from({ length: total.calls }, (_, index) => index + 1);
    if (numbers.join() !== upToTotal.join())
      problems.push(`torn: rows of ${total.writer} are not 1 to ${total.calls}`);
    const payloadNumbers = (payloads as PayloadRow[]).filter(isWhole).map((row) => row.n);
    if (payloadNumbers.join() !== upToTotal.join())
      problems.push(`torn: payloads of ${total.writer}`);
    const last = expected.get(total.writer) ?? 0;
    if (total.calls < last)
      problems.push(`lost: ${total.writer} has ${total.calls} calls, ${last} were promised`);
  }
  return problems;
}

interface CallRow {
  readonly seq: number;
  readonly writer: string;
  readonly n: number;
}

interface PayloadRow {
  readonly n: number;
  readonly bytes: Buffer;
}

function isWhole({ n, bytes }: PayloadRow): boolean {
  return bytes.equals(Buffer.alloc(bytes.length, n % 251));
}

/** Crash points right after the marks that tell of one kind of fact. */
export function afterMarks(recording: Recording, kind: keyof Facts): readonly number[] {
  const points: number[] = [];
  for (const [index, record] of recording.records.entries()) {
    if (record.kind === "mark" && kind in (JSON.parse(record.text) as Facts))
      points.push(index + 1);
  }
  return points;
}
