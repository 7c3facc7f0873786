import {
  fits,
  hasChunks,
  notWritten,
  placed,
  type PlacedPart,
  type StreamHead,
  type StreamWrite,
  type StreamWritten,
} from "../../model/execution/stream.ts";
import { done, row, rows, run, type Done, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";

/**
 * The set form of `writeStream`: a few statements for the output of up to 256 runs, about twenty
 * times a second. Its commit does not wait for the log of the server: the next flush, within
 * `wal_writer_delay`, takes it along. Runs whose output must make room, or whose head another
 * transaction holds, are left to `one`.
 */
export function* writeStreamsOnPostgres(
  inputs: readonly StreamWrite[],
): Tx<readonly (Done<StreamWritten> | undefined)[]> {
  yield* row(sql`SELECT set_config('synchronous_commit', 'off', TRUE) AS off`);
  const heads = yield* lockHeads(inputs);
  // Read behind the locks of the heads: a worker that lost its run meanwhile must not write.
  const locks = yield* heldLocks(inputs);
  const answers = inputs.map((input) => answerOf(input, heads, locks));
  const written = answers.flatMap((answer) => answer?.written ?? []);
  if (written.length > 0) yield* writeAll(written);
  const answered = inputs.filter((_, index) => answers[index] !== undefined);
  yield* foldAll(answered);
  return answers.map((answer) => answer && done(answer.result));
}

interface Written extends Pick<StreamWrite, "lockVersion"> {
  readonly head: StreamHead;
  readonly parts: readonly PlacedPart[];
}

interface Answer {
  readonly result: StreamWritten;
  readonly written: readonly Written[];
}

function answerOf(
  input: StreamWrite,
  heads: ReadonlyMap<number, StreamHead>,
  locks: ReadonlyMap<number, number>,
): Answer | undefined {
  const { execution, parts } = input;
  const head = heads.get(execution);
  const runVersion = locks.get(execution);
  // Missing: held by another transaction, unless nothing may be written anyway.
  if (head === undefined)
    return runVersion === undefined && input.folded.length === 0
      ? { result: notWritten, written: [] }
      : undefined;
  if (!hasChunks(input) || runVersion === undefined || runVersion < head.runVersion)
    return { result: notWritten, written: [] };
  const calls = new Set(parts.map(({ call }) => call));
  if (calls.size < parts.length || !fits(head, input)) return undefined;
  const written = { ...placed(head, input, runVersion), lockVersion: input.lockVersion };
  return { result: { position: written.head.position, isFull: false }, written: [written] };
}

/** Joins the runs that the writing workers hold, `x`, to what is given of them. */
function held(inputs: readonly StreamWrite[]): Statement {
  return sql`
    FROM unnest(
      ${inputs.map(({ execution }) => execution)}::bigint[],
      ${inputs.map(({ id }) => id)}::text[],
      ${inputs.map(({ fence }) => fence.executor)}::text[],
      ${inputs.map(({ fence }) => fence.run)}::text[]
    ) AS given (execution, id, executor, run)
      JOIN holdfast_execution x ON x.key = given.execution AND x.state <> 'finished' AND x.lease_until IS NOT NULL
        AND x.executor = given.executor AND x.run = given.run`;
}

/** The versions of the runs that the writing workers hold. The rows are not locked. */
function* heldLocks(inputs: readonly StreamWrite[]): Tx<ReadonlyMap<number, number>> {
  const found = yield* rows<{ readonly key: number; readonly runVersion: number }>(sql`
    SELECT x.key, x.version AS "runVersion" ${held(inputs)}`);
  return new Map(found.map(({ key, runVersion }) => [key, runVersion]));
}

/**
 * Locks the heads of the runs. Adds those that are missing of runs that the writing workers hold, in
 * the order of their keys.
 */
function* lockHeads(inputs: readonly StreamWrite[]): Tx<ReadonlyMap<number, StreamHead>> {
  const found = yield* rows<StreamHead>(sql`
    SELECT execution, run_version AS "runVersion", position, size FROM holdfast_stream
    WHERE execution = ANY(${inputs.map(({ execution }) => execution)}::bigint[])
    ORDER BY execution FOR NO KEY UPDATE SKIP LOCKED`);
  const heads = new Map(found.map((head) => [head.execution, head]));
  const missing = inputs.filter((input) => hasChunks(input) && !heads.has(input.execution));
  if (missing.length === 0) return heads;
  const added = yield* rows<StreamHead>(sql`
    INSERT INTO holdfast_stream (execution, id, run_version, position, size)
    SELECT given.execution, given.id, 0, 0, 0 ${held(missing)}
    ORDER BY given.execution
    ON CONFLICT (execution) DO NOTHING
    RETURNING execution, run_version AS "runVersion", position, size`);
  for (const head of added) heads.set(head.execution, head);
  return heads;
}

function* writeAll(written: readonly Written[]): Tx<void> {
  const heads = written.map(({ head }) => head);
  const parts = written.flatMap((one) => one.parts.map((part) => ({ ...one, part })));
  if (parts.length > 0) {
    const superseding = yield* supersedeAll(parts.filter(({ part }) => part.isFirst));
    yield* insertAll(parts, superseding);
  }
  yield* run(sql`
    UPDATE holdfast_stream s SET run_version = t.run_version, position = t.position, size = t.size
    FROM unnest(
      ${heads.map(({ execution }) => execution)}::bigint[],
      ${heads.map(({ runVersion }) => runVersion)}::bigint[],
      ${heads.map(({ position }) => position)}::bigint[],
      ${heads.map(({ size }) => size)}::bigint[]
    ) AS t (execution, run_version, position, size)
    WHERE s.execution = t.execution`);
}

interface OwnedPart extends Omit<Written, "parts"> {
  readonly part: PlacedPart;
}

/** Marks what older attempts of the same steps have written. Returns the steps that had some. */
function* supersedeAll(first: readonly OwnedPart[]): Tx<ReadonlySet<string>> {
  if (first.length === 0) return new Set();
  const found = yield* rows<{ readonly execution: number; readonly call: number }>(sql`
    UPDATE holdfast_stream_part p SET state = 'superseded'
    FROM unnest(
      ${first.map(({ head }) => head.execution)}::bigint[],
      ${first.map(({ lockVersion }) => lockVersion)}::bigint[],
      ${first.map(({ part }) => part.continuation)}::bigint[],
      ${first.map(({ part }) => part.call)}::bigint[],
      ${first.map(({ part }) => part.attempt)}::bigint[]
    ) AS t (execution, lock_version, continuation, call, attempt)
    WHERE p.execution = t.execution AND p.continuation = t.continuation AND p.call = t.call AND p.state <> 'superseded'
      AND (p.run_version < t.lock_version OR p.attempt < t.attempt)
    RETURNING p.execution, p.call`);
  return new Set(found.map(stepName));
}

function stepName({
  execution,
  call,
}: {
  readonly execution: number;
  readonly call: number;
}): string {
  return `${execution}#${call}`;
}

function* insertAll(parts: readonly OwnedPart[], superseding: ReadonlySet<string>): Tx<void> {
  const supersedes = ({ head: { execution }, part: { isFirst, call } }: OwnedPart): number =>
    isFirst && superseding.has(stepName({ execution, call })) ? 1 : 0;
  yield* run(sql`
    INSERT INTO holdfast_stream_part
      (execution, run_version, supersedes, position, chunks, continuation, call, step, attempt, at, size, payload, state)
    SELECT t.*, 'live' FROM unnest(
      ${parts.map(({ head }) => head.execution)}::bigint[],
      ${parts.map(({ head }) => head.runVersion)}::bigint[],
      ${parts.map(supersedes)}::bigint[],
      ${parts.map(({ part }) => part.position)}::bigint[],
      ${parts.map(({ part }) => part.chunks)}::bigint[],
      ${parts.map(({ part }) => part.continuation)}::bigint[],
      ${parts.map(({ part }) => part.call)}::bigint[],
      ${parts.map(({ part }) => part.step)}::text[],
      ${parts.map(({ part }) => part.attempt)}::bigint[],
      ${parts.map(({ part }) => part.at)}::bigint[],
      ${parts.map(({ part }) => part.size)}::bigint[],
      ${parts.map(({ part }) => part.payload)}::text[]
    ) AS t`);
}

function* foldAll(inputs: readonly StreamWrite[]): Tx<void> {
  const folded = inputs.flatMap(({ execution, folded: steps }) =>
    steps.map((step) => ({ execution, ...step })),
  );
  if (folded.length === 0) return;
  yield* run(sql`
    UPDATE holdfast_stream_part p SET state = 'folded'
    FROM unnest(
      ${folded.map(({ execution }) => execution)}::bigint[],
      ${folded.map(({ continuation }) => continuation)}::bigint[],
      ${folded.map(({ call }) => call)}::bigint[],
      ${folded.map(({ upTo }) => upTo)}::bigint[]
    ) AS t (execution, continuation, call, up_to)
    WHERE p.execution = t.execution AND p.continuation = t.continuation AND p.call = t.call AND p.state = 'live'
      AND p.position <= t.up_to`);
}
