import { parseSessionId, type SessionId } from "../model/ids/session-id.ts";
import { checkedCount, checkedText, givenInvalid } from "../model/shape.ts";
import { isRecord } from "../model/values/spoken-kind.ts";
import type { WaitOptions } from "../sql/database.ts";
import { onlyWait, type Call } from "./method.ts";
import type { SessionRef } from "./session-row.ts";

/**
 * The name of a session as callers pass it: its id, or its id and generation. The generation fences
 * handles of a deleted session.
 */
export type SessionName =
  string | { readonly id: string; readonly generation?: number | undefined };

/** Names a session that is being imported. Only the import creates these. */
export class ImportedName {
  readonly id: SessionId;
  readonly generation: number;

  constructor(id: SessionId, generation: number) {
    this.id = id;
    this.generation = generation;
  }
}

/**
 * @throws HoldfastError `ID_MALFORMED`, or `OPTION_INVALID` for a value that names no session or an
 *   invalid generation.
 */
export function sessionNamed(name: SessionName): SessionRef {
  if (typeof name === "string") return { id: parseSessionId(name) };
  if (name instanceof ImportedName) return name;
  if (!isRecord(name)) throw givenInvalid("session", "an id, or an object with an id", name);
  const { id, generation } = name;
  return {
    id: parseSessionId(id),
    ...(generation !== undefined && {
      generation: checkedCount("session.generation", generation, { min: 1 }),
    }),
  };
}

/** The call of a method that takes only a session. */
export function givenSession(
  _: object,
  session: SessionName,
  wait?: WaitOptions,
): Call<SessionRef> {
  return { input: sessionNamed(session), wait: onlyWait(wait) };
}

const idCharactersMax = 256;

/**
 * Checks the id of something in a session, such as a node or a turn.
 * @throws HoldfastError `NAME_INVALID`
 */
export function checkedId(what: string, id: string): string {
  return checkedText(what, id, idCharactersMax);
}
