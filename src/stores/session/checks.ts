import { excerpt } from "../../model/excerpt.ts";
import { batchesPerClaimMax } from "../../model/queue.ts";
import { turnInvalid } from "../../model/session-errors.ts";
import { parseSessionId } from "../../model/session-id.ts";
import { tokenKinds } from "../../model/session.ts";
import type {
  NewUsage,
  SessionMeta,
  SessionRelation,
} from "../../model/session.ts";
import type { TurnContent } from "../../model/session-turn.ts";
import {
  checkedCount,
  checkedText,
  givenInvalid,
  givenObject,
  optionalText,
} from "../../model/shape.ts";
import { checkTurnShape } from "./turn/turn-shape.ts";

/** What callers may give, checked where it enters. */

const nameCharactersMax = 512;
const pathCharactersMax = 4_096;
const idCharactersMax = 256;

/** So many fit into a transaction that holds nobody up for long. */
const partsMax = {
  nodes: 1_000,
  usage: 256,
  frames: 1_000,
  components: 256,
  claims: 1_000,
  attachments: 1_000,
} as const;

export function checkedMeta(meta: SessionMeta): SessionMeta {
  const { name, model, cwd, relation } = givenObject("meta", meta);
  return {
    name: checkedText("The name of a session", name, nameCharactersMax),
    model: optionalText("A model", model, nameCharactersMax),
    cwd: optionalText("A working directory", cwd, pathCharactersMax),
    relation: checkedRelation(givenObject("meta.relation", relation)),
  };
}

function checkedRelation(relation: SessionRelation): SessionRelation {
  switch (relation.kind) {
    case "root":
      return { kind: "root" };
    case "child":
      return {
        kind: "child",
        of: parseSessionId(relation.of),
        causedBy: optionalText("A cause", relation.causedBy, pathCharactersMax),
      };
    default:
      throw givenInvalid(
        "meta.relation.kind",
        '"root" or "child"',
        (relation as { readonly kind: unknown }).kind,
      );
  }
}

export function checkedId(what: string, id: string): string {
  return checkedText(what, id, idCharactersMax);
}

/** Names, sizes and numbers of a turn; its values are checked when they are encoded. */
export function checkTurn(content: TurnContent): void {
  checkTurnShape(content);
  const { nodes = [], usage = [], frames = [], components = {} } = content;
  for (const [part, max] of Object.entries(partsMax)) {
    const given = content[part as keyof typeof partsMax] ?? [];
    const count = Array.isArray(given)
      ? given.length
      : Object.keys(given).length;
    if (count > max)
      throw turnInvalid(
        `it has ${count} ${part}, and at most ${max} go together.`,
        { part, count, max },
      );
  }
  for (const node of nodes) {
    if (node.id !== undefined) checkedId("The id of a node", node.id);
    checkedText("The kind of a node", node.kind);
    optionalText("The role of a node", node.role, 128);
    optionalText("The frame of a node", node.frame, idCharactersMax);
    optionalText("The cause of a node", node.causedBy, pathCharactersMax);
  }
  for (const [name, component] of Object.entries(components)) {
    checkedText("The name of a component", name);
    if (component !== null)
      checkedCount("The version of a component", component.version, {
        min: 0,
        max: Number.MAX_SAFE_INTEGER,
      });
  }
  const seen = new Set<string>();
  for (const { id, reason } of frames) {
    checkedId("The id of a frame", id);
    checkedText("The reason of a frame", reason);
    if (seen.has(id))
      throw turnInvalid(`it has two frames "${id}".`, { part: "frames", id });
    seen.add(id);
  }
  usage.forEach(checkUsage);
  for (const { claim, batches } of content.claims ?? []) {
    checkedId("A claim", claim);
    if (batches.length > batchesPerClaimMax)
      throw turnInvalid(
        `claim ${excerpt(claim)} names ${batches.length} batches, and a claim takes at most ${batchesPerClaimMax}.`,
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

function checkUsage(entry: NewUsage, ordinal: number): void {
  checkedText("The source of usage", entry.source, idCharactersMax);
  checkedText("The model of usage", entry.model, nameCharactersMax);
  for (const kind of tokenKinds) {
    const { [kind]: count = 0 } = entry;
    if (!Number.isSafeInteger(count) || count < 0)
      throw turnInvalid(
        `${kind} of usage entry ${ordinal} is not a count, which is a whole number from 0 to 2^53 − 1.`,
        { part: "usage", path: `usage[${ordinal}].${kind}`, ordinal, kind },
      );
  }
}
