import { excerpt } from "../../../model/values/excerpt.ts";
import type { LeaseFence } from "../../../model/lease.ts";
import { batchesPerClaimMax } from "../../../model/queue.ts";
import { turnInvalid } from "../../../model/session/errors.ts";
import type { TurnContent } from "../../../model/session/turn.ts";
import { tokenKinds, type NewUsage } from "../../../model/session/session.ts";
import {
  checkedCount,
  checkedText,
  draftOf,
  isStorable,
  optionalText,
} from "../../../model/shape.ts";
import { isRecord, spokenKind } from "../../../model/values/spoken-kind.ts";
import { checkedId } from "../../session-name.ts";

/** A turn to commit. */
export interface TurnDraft extends TurnContent {
  /** The id of the turn within its session. A commit with the same id is a repetition. */
  readonly turn: string;
  /** The session that the turn was made for. Refused unless it is the handle's. */
  readonly session?: string;
  /**
   * Proof that the caller holds the session's lease. A run that takes the open turn needs none, in a
   * transaction of its own: no other run may commit.
   */
  readonly fence?: LeaseFence;
  /**
   * Releases the lease with the commit. A run gives up its turn: if work waits, the next one
   * begins.
   */
  readonly release?: boolean;
  /** Commits only on top of this revision. */
  readonly expectedRevision?: number;
}

const draftNames = [
  "turn",
  "session",
  "fence",
  "release",
  "expectedRevision",
  "nodes",
  "leaf",
  "components",
  "usage",
  "claims",
  "attachments",
  "config",
  "frames",
  "currentFrame",
] as const satisfies readonly (keyof TurnDraft)[];

const nameCharactersMax = 512;
const causeCharactersMax = 4_096;
const idCharactersMax = 256;

/** The largest numbers of parts that fit into a transaction without delaying others for long. */
const partsMax = {
  nodes: 1_000,
  usage: 256,
  frames: 1_000,
  components: 256,
  claims: 1_000,
  attachments: 1_000,
} as const;

/**
 * Checks shape, names, sizes and numbers of a turn; encoding checks its values. Errors name the
 * part and the path, never a value.
 *
 * @throws HoldfastError `TURN_INVALID`, `NAME_INVALID`, `OPTION_INVALID`
 */
export function checkTurn(draft: TurnDraft): void {
  const content: TurnContent = draftOf("the turn", draft, draftNames);
  checkTurnShape(content);
  checkPartSize("components", Object.keys(content.components ?? {}).length);
  const { nodes = [], usage = [], frames = [], components = {} } = content;
  for (const node of nodes) {
    if (node.id !== undefined) checkedId("The id of a node", node.id);
    checkedText("The kind of a node", node.kind);
    optionalText("The role of a node", node.role, 128);
    optionalText("The frame of a node", node.frame, idCharactersMax);
    optionalText("The cause of a node", node.causedBy, causeCharactersMax);
  }
  for (const [name, component] of Object.entries(components)) {
    checkedText("The name of a component", name);
    if (component !== null)
      checkedCount(`components[${JSON.stringify(name)}].version`, component.version);
  }
  const seen = new Set<string>();
  for (const { id, reason } of frames) {
    checkedId("The id of a frame", id);
    checkedText("The reason of a frame", reason);
    if (seen.has(id)) throw turnInvalid(`it has two frames "${id}".`, { part: "frames", id });
    seen.add(id);
  }
  usage.forEach(checkUsage);
  for (const { claim, batches } of content.claims ?? []) {
    checkedId("A claim", claim);
    if (batches.length > batchesPerClaimMax)
      throw turnInvalid(
        `claim ${excerpt(claim)} names ${batches.length} batches, but a claim takes at most ${batchesPerClaimMax}.`,
        {
          part: "claims",
          claim,
          count: batches.length,
          max: batchesPerClaimMax,
        },
      );
    for (const batch of batches) checkedId("A batch", batch);
  }
  for (const id of content.attachments ?? []) checkedId("An attachment", id);
}

function checkPartSize(part: keyof typeof partsMax, count: number): void {
  const { [part]: max } = partsMax;
  if (count <= max) return;
  throw turnInvalid(`it has ${count} ${part}, but a turn takes at most ${max}.`, {
    part,
    count,
    max,
  });
}

function checkUsage(entry: NewUsage, ordinal: number): void {
  checkedText("The source of usage", entry.source, idCharactersMax);
  checkedText("The model of usage", entry.model, nameCharactersMax);
  for (const kind of tokenKinds) {
    const { [kind]: count = 0 } = entry;
    if (!Number.isSafeInteger(count) || count < 0)
      throw turnInvalid(
        `${kind} of usage entry ${ordinal} is not a count: a whole number from 0 to 2^53 − 1.`,
        { part: "usage", path: `usage[${ordinal}].${kind}`, ordinal, kind },
      );
  }
}

/** The names allowed in each entry of a part; any other name is a typing error. */
const entryNames: Readonly<Record<string, readonly string[]>> = {
  nodes: ["id", "parent", "kind", "role", "frame", "causedBy", "payload"],
  usage: ["source", "model", ...tokenKinds],
  frames: ["id", "reason", "data", "state"],
  claims: ["claim", "batches"],
};

const lists = ["nodes", "usage", "frames", "claims", "attachments"] as const;

/**
 * Checks the outer shape of a turn, before the checks of its parts.
 * @throws HoldfastError `TURN_INVALID`, with `details.part` and `details.path`
 */
function checkTurnShape(content: TurnContent): void {
  for (const part of lists) {
    const given: unknown = content[part];
    if (given === undefined) continue;
    if (!Array.isArray(given)) throw misshapen(part, part, "a list", given);
    checkPartSize(part, given.length);
    if (part === "attachments") continue;
    given.forEach((item: unknown, index) => {
      const path = `${part}[${index}]`;
      if (!isRecord(item)) throw misshapen(part, path, "an object", item);
      const names = entryNames[part];
      if (names !== undefined) draftOf(path, item, names);
      if (part === "nodes") checkChoice(part, `${path}.parent`, item["parent"]);
      if (part === "claims" && !Array.isArray(item["batches"]))
        throw misshapen(part, `${path}.batches`, "a list", item["batches"]);
    });
  }
  checkComponents(content.components);
  checkChoice("leaf", "leaf", content.leaf);
  checkCurrentFrame(content.currentFrame);
}

function checkComponents(given: unknown): void {
  if (given === undefined) return;
  const part = "components";
  if (!isRecord(given)) throw misshapen(part, part, "an object", given);
  for (const [name, component] of Object.entries(given))
    if (component !== null && !isRecord(component))
      throw misshapen(
        part,
        `components[${JSON.stringify(name)}]`,
        "an object with version and value, or null",
        component,
      );
    else if (component !== null)
      draftOf(`components[${JSON.stringify(name)}]`, component, ["version", "value"]);
}

/** A node is chosen by id or by ordinal, not by both. */
function checkChoice(part: string, path: string, given: unknown): void {
  if (given === undefined || given === null) return;
  const expected = "{ id } or { ordinal } of a node, or null";
  if (!isRecord(given)) throw misshapen(part, path, expected, given);
  const { id, ordinal } = draftOf(path, given, ["id", "ordinal"]);
  if ((id === undefined) === (ordinal === undefined)) throw misshapen(part, path, expected, given);
  if (ordinal !== undefined) {
    if (!Number.isSafeInteger(ordinal))
      throw misshapen(part, `${path}.ordinal`, "a whole number", ordinal);
    return;
  }
  if (!isStorable(id) || id === "" || id.length > idCharactersMax)
    throw misshapen(part, `${path}.id`, "the id of a node", id);
}

function checkCurrentFrame(given: unknown): void {
  if (given === undefined || given === null) return;
  if (!isStorable(given) || given === "" || given.length > idCharactersMax)
    throw misshapen("head", "currentFrame", "the id of a frame, or null", given);
}

function misshapen(part: string, path: string, expected: string, given: unknown): Error {
  return turnInvalid(`${path} is ${spokenKind(given)}; expected ${expected}.`, {
    part,
    path,
  });
}
