import type { NewBlob } from "../../../model/blob.ts";
import type { Encoded } from "../../../model/encoded.ts";
import { excerpt } from "../../../model/excerpt.ts";
import { turnInvalid } from "../../../model/session-errors.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { row, rows, run } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";

/** A frame that is ready to be stored. */
export interface PreparedFrame {
  readonly id: string;
  readonly hash: string;
  readonly payload: Encoded;
  readonly state: NewBlob | null | "kept";
}

export interface FrameRow {
  readonly id: string;
  readonly ordinal: number;
  readonly hash: string;
  readonly payload: Encoded;
  readonly blob: string | null;
}

export function* frameRows(session: number): Tx<readonly FrameRow[]> {
  return yield* rows<FrameRow>(sql`
    SELECT id, ordinal, hash, payload, blob FROM holdfast_session_frame
    WHERE session = ${session} ORDER BY ordinal, id`);
}

/** Makes the frames what is given, and writes only what differs. Their blobs were put before. */
export function* writeFrames(
  session: number,
  given: readonly PreparedFrame[],
  stored: readonly FrameRow[],
): Tx<void> {
  const kept = new Set(given.map(({ id }) => id));
  const gone = stored.filter(({ id }) => !kept.has(id));
  if (gone.length > 0)
    yield* run(sql`
      DELETE FROM holdfast_session_frame
      WHERE session = ${session} AND id IN ${textsOf(gone.map(({ id }) => id))}`);
  for (const [ordinal, frame] of given.entries()) {
    const { id, hash, payload, state } = frame;
    const before = stored.find((other) => other.id === id);
    const blob = blobAfter(state, before);
    const isSame =
      before?.hash === hash &&
      before.ordinal === ordinal &&
      before.blob === blob;
    if (isSame) continue;
    yield* run(sql`
      INSERT INTO holdfast_session_frame (session, id, ordinal, hash, payload, blob)
      VALUES (${session}, ${id}, ${ordinal}, ${hash}, ${payload}, ${blob})
      ON CONFLICT (session, id) DO UPDATE SET
        ordinal = excluded.ordinal, hash = excluded.hash, payload = excluded.payload, blob = excluded.blob`);
  }
}

function blobAfter(
  state: PreparedFrame["state"],
  before: FrameRow | undefined,
): string | null {
  return state === "kept" ? (before?.blob ?? null) : (state?.hash ?? null);
}

/** The blobs that frames refer to until what is given is written. */
export function replacedFrameBlobs(
  given: readonly PreparedFrame[],
  stored: readonly FrameRow[],
): readonly string[] {
  return stored.flatMap((before) => {
    if (before.blob === null) return [];
    const frame = given.find(({ id }) => id === before.id);
    const after = frame === undefined ? null : blobAfter(frame.state, before);
    return after === before.blob ? [] : before.blob;
  });
}

/** The blobs of those frames whose state is to be written. */
export function newFrameBlobs(
  given: readonly PreparedFrame[],
  stored: readonly FrameRow[],
): readonly NewBlob[] {
  return given.flatMap(({ id, state }) => {
    if (state === null || state === "kept") return [];
    const before = stored.find((other) => other.id === id);
    return before?.blob === state.hash ? [] : state;
  });
}

/**
 * The frame that the session is in after a turn: the one given, or the one it
 * was in.
 *
 * @throws HoldfastError `TURN_INVALID` when the session would have no such frame.
 */
export function* chosenFrame(
  session: number,
  before: string | null,
  turn: {
    readonly frames: readonly PreparedFrame[] | undefined;
    readonly currentFrame: string | null | undefined;
  },
): Tx<string | null> {
  const { frames, currentFrame } = turn;
  const chosen = currentFrame === undefined ? before : currentFrame;
  if (chosen === null) return null;
  if (frames === undefined && currentFrame === undefined) return chosen;
  const isThere =
    frames === undefined
      ? (yield* row(sql`
          SELECT id FROM holdfast_session_frame WHERE session = ${session} AND id = ${chosen}`)) !==
        undefined
      : frames.some(({ id }) => id === chosen);
  if (isThere) return chosen;
  throw turnInvalid(
    `its current frame would be ${excerpt(chosen)}, which is not one of its frames. Name one of them as currentFrame, or null.`,
    { part: "head", path: "currentFrame" },
  );
}
