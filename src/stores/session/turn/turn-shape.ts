import { turnInvalid } from "../../../model/session-errors.ts";
import type { TurnContent } from "../../../model/session-turn.ts";
import { isRecord, spokenKind } from "../../../model/spoken-kind.ts";
import { isStorable } from "../../../model/shape.ts";

/** What a turn is made of, before anything looks into its parts. Errors name the part and the path, never a value. */

const lists = ["nodes", "usage", "frames", "claims", "attachments"] as const;

/** @throws HoldfastError `TURN_INVALID`, with `details.part` and `details.path` */
export function checkTurnShape(content: TurnContent): void {
  for (const part of lists) {
    const given: unknown = content[part];
    if (given === undefined) continue;
    if (!Array.isArray(given)) throw misshapen(part, part, "a list", given);
    if (part === "attachments") continue;
    given.forEach((item: unknown, index) => {
      const path = `${part}[${index}]`;
      if (!isRecord(item)) throw misshapen(part, path, "an object", item);
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
}

const charactersMax = 256;

/** By id or by place, and not by both. */
function checkChoice(part: string, path: string, given: unknown): void {
  if (given === undefined || given === null) return;
  const expected = "{ id } or { ordinal } of a node, or null";
  if (!isRecord(given)) throw misshapen(part, path, expected, given);
  const { id, ordinal } = given;
  if ((id === undefined) === (ordinal === undefined))
    throw misshapen(part, path, expected, given);
  if (ordinal !== undefined) {
    if (!Number.isSafeInteger(ordinal))
      throw misshapen(part, `${path}.ordinal`, "a whole number", ordinal);
    return;
  }
  if (!isStorable(id) || id === "" || id.length > charactersMax)
    throw misshapen(part, `${path}.id`, "the id of a node", id);
}

function checkCurrentFrame(given: unknown): void {
  if (given === undefined || given === null) return;
  if (!isStorable(given) || given === "" || given.length > charactersMax)
    throw misshapen(
      "head",
      "currentFrame",
      "the id of a frame, or null",
      given,
    );
}

function misshapen(
  part: string,
  path: string,
  expected: string,
  given: unknown,
): Error {
  return turnInvalid(`${path} is ${spokenKind(given)}; expected ${expected}.`, {
    part,
    path,
  });
}
