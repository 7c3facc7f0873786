import { blobKinds, type NewBlob } from "../../../model/blob.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { HoldfastError, isHoldfastError, type ErrorDetails } from "../../../model/errors.ts";
import { isUserMessage } from "../../../model/session/ancestry.ts";
import { messageText } from "../../../model/session/message.ts";
import {
  derivedNodeIds,
  type NewFrame,
  type NewNode,
  type NodePlace,
  type TurnContent,
} from "../../../model/session/turn.ts";
import type { SessionContext } from "../context.ts";
import type { PreparedNode } from "./nodes.ts";
import type { PreparedFrame } from "./state.ts";

/** The values of a turn, ready to be stored. */
interface EncodedParts {
  readonly nodes: readonly PreparedNode[];
  /** The blobs of components, by name. */
  readonly blobs: ReadonlyMap<string, NewBlob>;
  readonly frames: readonly PreparedFrame[] | undefined;
  readonly config: Encoded | undefined;
  /** The user messages as lists show them: their number and the first text. */
  readonly userMessages: number;
  readonly firstUserMessage: Encoded | null;
}

/** @throws HoldfastError `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE` …, with the part in `details` */
export function encodedParts(
  context: SessionContext,
  owner: Parameters<typeof derivedNodeIds>[1],
  { nodes = [], components = {}, frames, config }: TurnContent,
  places: readonly NodePlace[],
  at: number,
): EncodedParts {
  const idOf = derivedNodeIds(context.database.sha256Hex, owner);
  return {
    nodes: nodes.map((node, ordinal) => preparedNode(context, node, places, ordinal, idOf)),
    blobs: componentBlobs(context, components, at),
    frames: frames?.map((frame) => preparedFrame(context, frame, at)),
    config:
      config === undefined
        ? undefined
        : encodedPart({ part: "config" }, () => context.encode(config)),
    ...messagesOf(context, nodes),
  };
}

function messagesOf(
  { encode }: SessionContext,
  nodes: readonly NewNode[],
): Pick<EncodedParts, "userMessages" | "firstUserMessage"> {
  const messages = nodes.filter(isUserMessage);
  const [first] = messages;
  return {
    userMessages: messages.length,
    firstUserMessage: first === undefined ? null : encode(messageText(first.payload)),
  };
}

function componentBlobs(
  { blob }: SessionContext,
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
  { encodeChecked }: SessionContext,
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
    payload: encodedPart({ part: "nodes", ordinal }, () => encodeChecked(node.payload)),
  };
}

function preparedFrame(
  { hash, blob, codec }: SessionContext,
  { id, reason, data, state }: NewFrame,
  at: number,
): PreparedFrame {
  const ofData = { part: "frames", id, field: "data" };
  // By itself first: its path is then the caller's.
  const { read } = encodedPart(ofData, () => codec.encodeOnce(data));
  const payload = { reason, data: read };
  return {
    id,
    payload: encodedPart(ofData, () => codec.encode(payload) as Encoded),
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

/**
 * Encodes a value of a turn.
 * @throws HoldfastError the errors of `encode`, with the part in `details` too
 */
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
