import type { Branded } from "./brand.ts";
import type { JoinSetId } from "./join-set-id.ts";
import { memberFault, memberText, splitMember, type JoinSetMember } from "./join-set-member.ts";
import { malformedId, type IdFault } from "./malformed-id.ts";
import { isUlid } from "./ulid.ts";

/**
 * The id of an execution. A top-level one is `E_<ulid>` or a key that the caller chose. A child has
 * its parent's id followed by its place there: `order-42.o:7_1`. Dots occur nowhere else, so an id
 * reveals its parent without a read.
 */
export type ExecutionId = Branded<"ExecutionId">;

/** The limit for a key that a caller chose. */
export const ownKeyCharactersMax = 128;
const ownKeyAlphabet = /^[A-Za-z0-9_:/@-]+$/;
const charactersMax = 512;

const expected =
  'a run id: "E_<ulid>", or a key of 1 to 128 characters of A-Z, a-z, 0-9 and "_:/@-" that does not start with "E_" or "Delay_", ' +
  'followed for a child by parts such as ".n:payments_1", 512 characters in all';

/** @throws HoldfastError `ID_MALFORMED`; `details.reason` names the fault. */
export function parseExecutionId(text: string): ExecutionId {
  const fault = executionIdFault(text);
  if (fault === undefined) return text as ExecutionId;
  throw malformedId(expected, text, fault);
}

const expectedOwn =
  'an id for a run: a key of 1 to 128 characters of A-Z, a-z, 0-9 and "_:/@-" that does not start with "Delay_", or an existing "E_<ulid>". ' +
  "Ids with dots belong to children, and only their parents assign them";

/**
 * Parses the id of a run that is not a child. A child's id is refused, because the run would take
 * the place of that child.
 * @throws HoldfastError `ID_MALFORMED`
 */
export function parseOwnExecutionId(text: string): ExecutionId {
  if (typeof text !== "string" || !text.includes(".")) return parseExecutionId(text);
  throw malformedId(expectedOwn, text, "alphabet");
}

/** Returns the fault of an execution id, or undefined when it is valid. */
export function executionIdFault(text: string): IdFault | undefined {
  if (typeof text !== "string") return "alphabet";
  if (text.length > charactersMax) return "length";
  const dot = text.indexOf(".");
  if (dot < 0) return topLevelFault(text);
  for (const segment of text.slice(dot + 1).split(".")) {
    const fault = memberFault(segment);
    if (fault !== undefined) return fault;
  }
  return topLevelFault(text.slice(0, dot));
}

function topLevelFault(text: string): IdFault | undefined {
  if (text.startsWith("E_")) {
    return isUlid(text.slice(2)) ? undefined : "ulid";
  }
  // A delay id is "Delay_" and the id of a place below an execution. With a key "Delay_a", the
  // child "Delay_a.o:1_1" would read the same as a delay of "a".
  if (text.startsWith("Delay_")) return "prefix";
  if (text.length === 0 || text.length > ownKeyCharactersMax) return "length";
  return ownKeyAlphabet.test(text) ? undefined : "alphabet";
}

/** Returns the id of the `index`-th child that `parent` submitted to `joinSet`. */
export function childId(parent: ExecutionId, joinSet: JoinSetId, index: number): ExecutionId {
  const id = `${parent}.${memberText(joinSet, index)}`;
  if (id.length <= charactersMax) return id as ExecutionId;
  throw malformedId(
    `ids of at most ${charactersMax} characters, which a child nested this deeply exceeds (start it as a run of its own instead)`,
    id,
    "length",
  );
}

/** Returns the first child of `joinSet`. */
export function nextLevel(parent: ExecutionId, joinSet: JoinSetId): ExecutionId {
  return childId(parent, joinSet, 1);
}

/** Returns the next sibling of a child. A top-level execution has none. */
export function increment(id: ExecutionId): ExecutionId {
  const parts = splitToParts(id);
  if (parts === undefined) throw malformedId("a child's id", id, "segment");
  return childId(parts.parent, parts.joinSet, parts.index + 1);
}

/** Returns a child's parent and its place there; undefined for a top-level id. */
export function splitToParts(
  id: ExecutionId,
): ({ readonly parent: ExecutionId } & JoinSetMember) | undefined {
  const dot = id.lastIndexOf(".");
  if (dot < 0) return undefined;
  return {
    parent: id.slice(0, dot) as ExecutionId,
    ...splitMember(id.slice(dot + 1)),
  };
}

/** Returns the execution at the root of the tree that contains `id`. */
export function topLevelOf(id: ExecutionId): ExecutionId {
  const dot = id.indexOf(".");
  return dot < 0 ? id : (id.slice(0, dot) as ExecutionId);
}

/** Returns the ancestors of an execution from the root down, and the execution itself. */
export function lineOf(id: ExecutionId): readonly ExecutionId[] {
  const line: ExecutionId[] = [];
  for (let dot = id.indexOf("."); dot >= 0; dot = id.indexOf(".", dot + 1))
    line.push(id.slice(0, dot) as ExecutionId);
  return [...line, id];
}
