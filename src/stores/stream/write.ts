import {
  allDropped,
  fits,
  hasChunks,
  notWritten,
  placed,
  roomFor,
  type FoldedStep,
  type PlacedPart,
  type RemovablePart,
  type StreamHead,
  type StreamPart,
  type StreamWrite,
  type StreamWritten,
} from "../../model/execution/stream.ts";
import { integersOf, lockRow } from "../../sql/dialect.ts";
import { row, rows, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import type { StreamContext } from "./context.ts";
import { writeStreamsOnPostgres } from "./write.many.postgres.ts";

/** The most parts that one write removes to make room. */
const removedMax = 1_000;

/**
 * Writes live output of one run. It locks the run's own row of `holdfast_stream` and no other. The
 * row of the execution is only read: a worker without the lock writes nothing, and one that loses
 * it in between is behind the next owner, by the version of the log under which each of them wrote.
 *
 * Differs from all other writes: it is not durable when it is acknowledged. Nothing rests on it but
 * what a reader sees, so it waits for no flush. See docs/adr/2026-11-20-live-output-is-not-flushed.md.
 */
export const writeStream = storeOperation("writeStream", {
  // Short: it is in the hint of each write.
  key: (input) => String(input.execution),
  isUnflushed: true,
  *one(_: StreamContext, input: StreamWrite): Tx<StreamWritten> {
    const head = yield* lockHead(input);
    if (head === undefined) return notWritten;
    const written = yield* writeParts(input, head);
    for (const step of input.folded) yield* fold(input.execution, step);
    return written;
  },
  many: writeStreamsOnPostgres,
});

/** A run that its last holder still has: locked, or resumed in its memory. */
const isHeld: Statement = sql`state <> 'finished' AND lease_until IS NOT NULL`;

function* lockHead(input: StreamWrite): Tx<StreamHead | undefined> {
  const { execution, id, fence } = input;
  if (hasChunks(input))
    yield* run(sql`
    INSERT INTO holdfast_stream (execution, id, run_version, position, size)
    SELECT key, ${id}, 0, 0, 0 FROM holdfast_execution
    WHERE key = ${execution} AND executor = ${fence.executor} AND run = ${fence.run} AND ${isHeld}
    ON CONFLICT (execution) DO NOTHING`);
  return yield* row<StreamHead>(sql`
    SELECT execution, run_version AS "runVersion", position, size FROM holdfast_stream
    WHERE execution = ${execution} ${lockRow}`);
}

function* writeParts(given: StreamWrite, head: StreamHead): Tx<StreamWritten> {
  const { execution, fence } = given;
  if (!hasChunks(given)) return notWritten;
  const held = yield* row<{ readonly runVersion: number }>(sql`
    SELECT version AS "runVersion" FROM holdfast_execution
    WHERE key = ${execution} AND executor = ${fence.executor} AND run = ${fence.run} AND ${isHeld}`);
  if (held === undefined || held.runVersion < head.runVersion) return notWritten;
  const room = yield* madeRoom(given, head);
  const write = room === undefined ? allDropped(given) : given;
  const before = { ...head, size: head.size - (room ?? 0) };
  const { head: after, parts } = placed(before, write, held.runVersion);
  for (const part of parts) {
    const supersedes = part.isFirst && (yield* supersede(given, part));
    yield* insertPart(execution, held.runVersion, part, supersedes);
  }
  yield* run(sql`
    UPDATE holdfast_stream SET run_version = ${after.runVersion}, position = ${after.position}, size = ${after.size}
    WHERE execution = ${execution}`);
  return { position: after.position, isFull: room === undefined };
}

/** Marks what older attempts of a step have written. Returns false if there is nothing. */
function* supersede(
  { execution, lockVersion }: StreamWrite,
  { continuation, call, attempt }: StreamPart,
): Tx<boolean> {
  const older = yield* run(sql`
    UPDATE holdfast_stream_part SET state = 'superseded'
    WHERE execution = ${execution} AND continuation = ${continuation} AND call = ${call} AND state <> 'superseded'
      AND (run_version < ${lockVersion} OR attempt < ${attempt})`);
  return older > 0;
}

/** Removes old parts if a write does not fit. Returns the size that was removed; undefined if it still does not fit. */
function* madeRoom(write: StreamWrite, head: StreamHead): Tx<number | undefined> {
  if (fits(head, write)) return 0;
  const { execution } = write;
  const removable = yield* rows<RemovablePart>(sql`
    SELECT position, size FROM holdfast_stream_part WHERE execution = ${execution} AND state <> 'live'
    ORDER BY CASE state WHEN 'superseded' THEN 0 ELSE 1 END, position LIMIT ${removedMax}`);
  const removed = roomFor(head, write, removable);
  if (removed === undefined) return undefined;
  yield* run(sql`
    DELETE FROM holdfast_stream_part
    WHERE execution = ${execution} AND position IN ${integersOf(removed.map(({ position }) => position))}`);
  return removed.reduce((sum, { size }) => sum + size, 0);
}

function* insertPart(
  execution: number,
  runVersion: number,
  part: PlacedPart,
  supersedes: boolean,
): Tx<void> {
  const { position, chunks, continuation, call, step, attempt, at, size, payload } = part;
  yield* run(sql`
    INSERT INTO holdfast_stream_part
      (execution, position, chunks, run_version, continuation, call, step, attempt, at, size, supersedes, state, payload)
    VALUES (${execution}, ${position}, ${chunks}, ${runVersion}, ${continuation}, ${call}, ${step}, ${attempt},
      ${at}, ${size}, ${supersedes ? 1 : 0}, 'live', ${payload})`);
}

function* fold(execution: number, { continuation, call, upTo }: FoldedStep): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_stream_part SET state = 'folded'
    WHERE execution = ${execution} AND continuation = ${continuation} AND call = ${call} AND state = 'live'
      AND position <= ${upTo}`);
}
