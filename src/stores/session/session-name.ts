import { parseSessionId } from "../../model/session-id.ts";
import type { SessionId } from "../../model/session-id.ts";
import { isRecord } from "../../model/spoken-kind.ts";
import { checkedCount, givenInvalid } from "../../model/shape.ts";
import type { SessionRef } from "./session-row.ts";

/** How callers name a session: by its id, or by id and generation, so that a handle of a deleted one is fenced. */
export type SessionName =
  string | { readonly id: string; readonly generation?: number | undefined };

/** Names a session that is being imported: nobody else can make one of these. */
export class ImportedName {
  readonly id: SessionId;
  readonly generation: number;

  constructor(id: SessionId, generation: number) {
    this.id = id;
    this.generation = generation;
  }
}

/** @throws HoldfastError `ID_MALFORMED`, or `OPTION_INVALID` for what names no session, or a generation that is no number from 1 on. */
export function sessionNamed(name: SessionName): SessionRef {
  if (typeof name === "string") return { id: parseSessionId(name) };
  if (name instanceof ImportedName) return name;
  if (!isRecord(name))
    throw givenInvalid("session", "an id, or an object with an id", name);
  const { id, generation } = name;
  return {
    id: parseSessionId(id),
    ...(generation !== undefined && {
      generation: checkedCount("A generation", generation, {
        min: 1,
        max: Number.MAX_SAFE_INTEGER,
      }),
    }),
  };
}
