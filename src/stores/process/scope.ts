import type { NamedScope } from "../../model/process-registration.ts";
import type { SessionScope } from "../../model/process.ts";
import { isRecord } from "../../model/spoken-kind.ts";
import { checkedText, givenInvalid } from "../../model/shape.ts";
import type { Tx } from "../../sql/operation.ts";
import { sessionNamed } from "../session/session-name.ts";
import type { SessionName } from "../session/session-name.ts";
import { keptSession, livingSession } from "../session/session-row.ts";
import type { SessionRef } from "../session/session-row.ts";

/** How callers name a session, or one frame of it. */
export type SessionScopeName =
  | SessionName
  | { readonly session: SessionName; readonly frame?: string | null };

export interface SessionScopeRef {
  readonly session: SessionRef;
  readonly frame: string | null;
}

const frameCharactersMax = 256;

/** An empty frame counts as none. @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID`, `OPTION_INVALID` */
export function scopeNamed(name: SessionScopeName): SessionScopeRef {
  if (typeof name === "string")
    return { session: sessionNamed(name), frame: null };
  if (!isRecord(name))
    throw givenInvalid("scope", "a session, or { session, frame }", name);
  if (!("session" in name)) return { session: sessionNamed(name), frame: null };
  const { session, frame } = name;
  return {
    session: sessionNamed(session),
    frame:
      frame === undefined || frame === null || frame === ""
        ? null
        : checkedText("A frame", frame, frameCharactersMax),
  };
}

/** The parts of a scope as its caller named them: what a registration is compared by. */
export function namedParts({ session, frame }: SessionScopeRef): NamedScope {
  return {
    session: session.id,
    generation: session.generation ?? null,
    frame,
  };
}

/** A scope of the living session. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export function* livingScope({
  session,
  frame,
}: SessionScopeRef): Tx<SessionScope> {
  const { id, generation } = yield* livingSession(session);
  return { session: id, generation, frame };
}

/** The same, with the session kept: it cannot be deleted before the transaction ends. */
export function* keptScope({
  session,
  frame,
}: SessionScopeRef): Tx<SessionScope> {
  const { id, generation } = yield* keptSession(session);
  return { session: id, generation, frame };
}
