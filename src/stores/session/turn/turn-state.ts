import type { Tx } from "../../../sql/operation.ts";
import { exchangeBlobs } from "../../blob/blob-row.ts";
import { removeLeft } from "../../blob-roots.ts";
import {
  componentRows,
  newComponentBlobs,
  replacedComponentBlobs,
  writeComponents,
} from "./turn-components.ts";
import type { Manifest, PreparedComponent } from "./turn-components.ts";
import {
  frameRows,
  newFrameBlobs,
  replacedFrameBlobs,
  writeFrames,
} from "./turn-frames.ts";
import type { PreparedFrame } from "./turn-frames.ts";

interface TurnState {
  readonly session: number;
  readonly revision: number;
  readonly components: readonly PreparedComponent[];
  /** Undefined when they stay as they are. */
  readonly frames: readonly PreparedFrame[] | undefined;
  /** Blobs that somebody put on their own later stay. */
  readonly putUntil: number;
}

/**
 * Writes checkpoint and frames. Blobs that they replace go at once unless
 * somebody else refers to them: afterwards nothing would tell whose they were.
 * Tells which parts of the checkpoint changed.
 */
export function* writeState(turn: TurnState): Tx<Manifest> {
  const { session, revision, components, frames, putUntil } = turn;
  const stored = yield* componentRows(session);
  const storedFrames = frames === undefined ? [] : yield* frameRows(session);
  const left = yield* exchangeBlobs({
    puts: [
      ...newComponentBlobs(components, stored),
      ...newFrameBlobs(frames ?? [], storedFrames),
    ],
    leaving: [
      ...replacedComponentBlobs(components, stored),
      // Without frames none was read, and all stay.
      ...replacedFrameBlobs(frames ?? [], storedFrames),
    ],
  });
  const changed = yield* writeComponents(session, revision, components, stored);
  if (frames !== undefined) yield* writeFrames(session, frames, storedFrames);
  yield* removeLeft(left, putUntil);
  return changed;
}
