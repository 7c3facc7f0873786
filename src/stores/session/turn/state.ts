import type { NewBlob } from "../../../model/blob.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { excerpt } from "../../../model/values/excerpt.ts";
import { turnInvalid } from "../../../model/session/errors.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { row, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { exchangeBlobs } from "../../blob/blob-row.ts";
import { removeLeft } from "../../blob-roots.ts";
import { componentRows, frameRows, type ComponentRow, type FrameRow } from "../state-row.ts";

/** A part of the checkpoint, ready to be stored. Without a blob it is removed. */
export interface PreparedComponent {
  readonly name: string;
  readonly version: number;
  readonly hash: string;
  readonly blob: NewBlob | null;
}

/** Parts of a checkpoint without their content. */
type Manifest = Readonly<Record<string, { readonly version: number; readonly revision: number }>>;

/**
 * Writes the changed parts, whose blobs are stored already, and leaves the others with their
 * revision. Returns the changed ones.
 */
function* writeComponents(
  session: number,
  revision: number,
  given: readonly PreparedComponent[],
  stored: readonly ComponentRow[],
): Tx<Manifest> {
  const changed = new Map<string, Manifest[string]>();
  for (const component of given) {
    const { name, version, hash, blob } = component;
    const before = stored.find((other) => other.name === name);
    if (blob === null) {
      if (before === undefined) continue;
      yield* run(sql`
        DELETE FROM holdfast_session_component WHERE session = ${session} AND name = ${name}`);
      continue;
    }
    if (isUnchanged(component, before)) continue;
    changed.set(name, { version, revision });
    yield* run(sql`
      INSERT INTO holdfast_session_component (session, name, version, revision, hash, blob)
      VALUES (${session}, ${name}, ${version}, ${revision}, ${hash}, ${blob.hash})
      ON CONFLICT (session, name) DO UPDATE SET
        version = excluded.version, revision = excluded.revision, hash = excluded.hash, blob = excluded.blob`);
  }
  return Object.fromEntries([...changed].toSorted(([left], [right]) => (left < right ? -1 : 1)));
}

/** The blobs of the parts to write. */
function newComponentBlobs(
  given: readonly PreparedComponent[],
  stored: readonly ComponentRow[],
): readonly NewBlob[] {
  return given.flatMap((component) => {
    const before = stored.find(({ name }) => name === component.name);
    return isUnchanged(component, before) ? [] : (component.blob ?? []);
  });
}

/** The blobs that those parts still refer to before the write. */
function replacedComponentBlobs(
  given: readonly PreparedComponent[],
  stored: readonly ComponentRow[],
): readonly string[] {
  return given.flatMap((component) => {
    const before = stored.find(({ name }) => name === component.name);
    return before === undefined || isUnchanged(component, before) ? [] : before.blob;
  });
}

function isUnchanged(
  { version, hash }: PreparedComponent,
  before: ComponentRow | undefined,
): boolean {
  return before?.hash === hash && before.version === version;
}

/** A frame that is ready to be stored. */
export interface PreparedFrame {
  readonly id: string;
  readonly hash: string;
  readonly payload: Encoded;
  readonly state: NewBlob | null | "kept";
}

/**
 * Replaces the frames with the given ones, and writes only differences. Their blobs are stored
 * already.
 */
function* writeFrames(
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
    const isSame = before?.hash === hash && before.ordinal === ordinal && before.blob === blob;
    if (isSame) continue;
    yield* run(sql`
      INSERT INTO holdfast_session_frame (session, id, ordinal, hash, payload, blob)
      VALUES (${session}, ${id}, ${ordinal}, ${hash}, ${payload}, ${blob})
      ON CONFLICT (session, id) DO UPDATE SET
        ordinal = excluded.ordinal, hash = excluded.hash, payload = excluded.payload, blob = excluded.blob`);
  }
}

function blobAfter(state: PreparedFrame["state"], before: FrameRow | undefined): string | null {
  return state === "kept" ? (before?.blob ?? null) : (state?.hash ?? null);
}

/** The blobs that frames still refer to before the write. */
function replacedFrameBlobs(
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

/** The blobs of frames whose state is written. */
function newFrameBlobs(
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
 * The session's frame after a turn: the given one, or the one before.
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

interface TurnState {
  readonly session: number;
  readonly revision: number;
  readonly components: readonly PreparedComponent[];
  /** Undefined when they stay as they are. */
  readonly frames: readonly PreparedFrame[] | undefined;
  /** Standalone blobs stored later stay. */
  readonly putUntil: number;
}

/**
 * Writes checkpoint and frames. Replaced blobs are removed at once unless something else refers to
 * them: afterwards no row would name their owner. Returns the parts of the checkpoint that changed.
 */
export function* writeState(turn: TurnState): Tx<Manifest> {
  const { session, revision, components, frames, putUntil } = turn;
  const stored = yield* componentRows(session);
  const storedFrames = frames === undefined ? [] : yield* frameRows(session);
  const left = yield* exchangeBlobs({
    puts: [...newComponentBlobs(components, stored), ...newFrameBlobs(frames ?? [], storedFrames)],
    leaving: [
      ...replacedComponentBlobs(components, stored),
      // Without given frames none were read, and all stay.
      ...replacedFrameBlobs(frames ?? [], storedFrames),
    ],
  });
  const changed = yield* writeComponents(session, revision, components, stored);
  if (frames !== undefined) yield* writeFrames(session, frames, storedFrames);
  yield* removeLeft(left, putUntil);
  return changed;
}
