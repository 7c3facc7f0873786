import { blobKinds } from "../../../model/blob.ts";
import type { NewBlob } from "../../../model/blob.ts";
import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import type { ErrorDetails } from "../../../model/errors.ts";
import type { LeaseFence } from "../../../model/lease.ts";
import { parseSessionId } from "../../../model/session-id.ts";
import { sessionMismatch } from "../../../model/session-errors.ts";
import { isUserMessage } from "../../../model/session-ancestry.ts";
import { messageText } from "../../../model/session-message.ts";
import {
  componentHashesOf,
  derivedNodeIds,
  nodePlaces,
  turnIdentity,
  usageGiven,
} from "../../../model/session-turn.ts";
import type {
  NewFrame,
  NewNode,
  NodePlace,
  TurnContent,
} from "../../../model/session-turn.ts";
import type { SessionHandle } from "../../../model/session.ts";
import { checkedCount, givenFlag, givenObject } from "../../../model/shape.ts";
import { checkTurn, checkedId } from "../checks.ts";
import type { CommitTurn } from "./commit-turn.ts";
import type { SessionSurroundings } from "../context.ts";
import { sessionNamed } from "../session-name.ts";
import type { PreparedFrame } from "./turn-frames.ts";
import type { PreparedNode } from "./turn-nodes.ts";

/** A turn to be committed. */
export interface Turn extends TurnContent {
  /** Names the turn within its session: a commit with the same one is a repetition. */
  readonly turn: string;
  /** The session the turn was made for. Refused unless it is the handle's. */
  readonly session?: string;
  /** Proof that the session's lease is held. */
  readonly fence?: LeaseFence;
  /** Gives the lease back with the commit. */
  readonly release?: boolean;
  /** Commit only on top of this revision. */
  readonly expectedRevision?: number;
}

/** Everything a commit needs, encoded and hashed: inside the transaction nothing can fail for its values. */
export function preparedTurn(
  around: SessionSurroundings,
  handle: SessionHandle,
  given: Turn,
): CommitTurn {
  const session = sessionNamed(handle);
  const turn = checkedId("The id of a turn", givenObject("turn", given).turn);
  if (given.session !== undefined && given.session !== session.id)
    throw sessionMismatch(session.id, parseSessionId(given.session));
  checkTurn(given);
  const { nodes = [], components = {}, expectedRevision } = given;
  if (expectedRevision !== undefined)
    checkedCount("A revision", expectedRevision, {
      min: 0,
      max: Number.MAX_SAFE_INTEGER,
    });
  const generation = checkedCount("A generation", handle.generation, {
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
  });
  const owner = { session: session.id, generation, turn };
  const places = nodePlaces(session.id, nodes);
  const at = around.clock.now();
  const idOf = derivedNodeIds(around.database.sha256Hex, owner);
  // Encoded before anything is hashed, since that says which part cannot be.
  const parts = {
    nodes: nodes.map((node, ordinal) =>
      preparedNode(around, node, places, ordinal, idOf),
    ),
    blobs: componentBlobs(around, components, at),
    frames: given.frames?.map((frame) => preparedFrame(around, frame, at)),
    config:
      given.config === undefined
        ? undefined
        : encodedPart({ part: "config" }, () => around.encode(given.config)),
  };
  const hashes = componentHashesOf(around.hash, components);
  const messages = nodes.filter(isUserMessage);
  return {
    session,
    turn,
    at,
    now: () => around.clock.now(),
    identity: turnIdentity(around.hash, owner, given, places, hashes),
    fence: given.fence,
    release: givenFlag("release", given.release) ?? false,
    expectedRevision,
    nodes: parts.nodes,
    leaf: given.leaf,
    userMessages: messages.length,
    firstUserMessage:
      messages[0] === undefined
        ? null
        : around.encode(messageText(messages[0].payload)),
    components: Object.entries(components).map(([name, component]) => ({
      name,
      version: component?.version ?? 0,
      hash: hashes.get(name) ?? "",
      blob: parts.blobs.get(name) ?? null,
    })),
    usage: (given.usage ?? []).map(usageGiven),
    claims: given.claims ?? [],
    attachments: given.attachments ?? [],
    config: parts.config,
    frames: parts.frames,
    currentFrame: given.currentFrame,
    putUntil: at - around.graceMs,
  };
}

function componentBlobs(
  { blob }: SessionSurroundings,
  components: NonNullable<TurnContent["components"]>,
  at: number,
): ReadonlyMap<string, NewBlob> {
  const blobs = new Map<string, NewBlob>();
  for (const [name, component] of Object.entries(components))
    if (component !== null)
      blobs.set(
        name,
        encodedPart({ part: "components", name }, () =>
          blob(component.value, blobKinds.checkpointComponent, at),
        ),
      );
  return blobs;
}

function preparedNode(
  { encode }: SessionSurroundings,
  node: NewNode,
  places: readonly NodePlace[],
  ordinal: number,
  idOf: (ordinal: number) => string,
): PreparedNode {
  return {
    id: node.id ?? idOf(ordinal),
    isNamed: node.id !== undefined,
    place: places[ordinal] ?? { kind: "leaf" },
    kind: node.kind,
    role: node.role ?? null,
    frame: node.frame ?? null,
    causedBy: node.causedBy ?? null,
    payload: encodedPart({ part: "nodes", ordinal }, () =>
      encode(node.payload),
    ),
  };
}

function preparedFrame(
  { hash, blob, encode }: SessionSurroundings,
  { id, reason, data, state }: NewFrame,
  at: number,
): PreparedFrame {
  const payload = { reason, data };
  const ofData = { part: "frames", id, field: "data" };
  // By itself first: its path is then the caller's.
  encodedPart(ofData, () => encode(data));
  return {
    id,
    payload: encodedPart(ofData, () => encode(payload)),
    hash: hash("session-frame", 1, payload),
    state:
      state === undefined
        ? "kept"
        : state === null
          ? null
          : encodedPart({ part: "frames", id, field: "state" }, () =>
              blob(state, blobKinds.executionState, at),
            ),
  };
}

/** Encodes a value of a turn. @throws HoldfastError as `encode`, with the part in `details` too */
function encodedPart<T>(where: ErrorDetails, encode: () => T): T {
  try {
    return encode();
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    throw new HoldfastError(
      error.code,
      `${error.message} It is in ${Object.entries(where)
        .map(([name, value]) => `${name} ${JSON.stringify(value)}`)
        .join(", ")} of the turn. Nothing was changed.`,
      { ...error.details, ...where },
      { cause: error.cause },
    );
  }
}
