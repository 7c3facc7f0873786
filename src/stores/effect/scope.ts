import { effectScopeInvalid } from "../../model/effect-errors.ts";
import { isStorable } from "../../model/shape.ts";
import type { Tx } from "../../sql/operation.ts";
import { sessionNamed } from "../session/session-name.ts";
import type { SessionName } from "../session/session-name.ts";
import { keptSession, livingSession } from "../session/session-row.ts";
import type { SessionRef } from "../session/session-row.ts";

/**
 * What is run again as a whole, and whose effects therefore belong together:
 * a turn of a session, a process, an operation of the host. Scopes of another
 * kind or session share nothing, whatever their ids.
 */
export interface EffectScope {
  /** Such as "turn", "drain", "process" or "operation": a name of your own. */
  readonly kind: string;
  readonly id: string;
  /** The session that it belongs to, and with which its effects are removed. */
  readonly session?: SessionName | undefined;
}

/** The same, checked. */
export interface EffectScopeRef {
  readonly kind: string;
  readonly id: string;
  readonly session: SessionRef | undefined;
}

const kindCharactersMax = 64;
const idCharactersMax = 256;

/** @throws HoldfastError `EFFECT_SCOPE_INVALID`, and for the session `ID_MALFORMED` or `OPTION_INVALID` */
export function checkedScope(scope: EffectScope): EffectScopeRef {
  const given: unknown = scope;
  if (typeof given !== "object" || given === null)
    throw effectScopeInvalid("scope", "an object with kind and id");
  const { kind, id, session } = given as Partial<EffectScope>;
  return {
    kind: checkedPart("scope.kind", kind, kindCharactersMax),
    id: checkedPart("scope.id", id, idCharactersMax),
    session: session === undefined ? undefined : checkedSession(session),
  };
}

function checkedPart(
  path: string,
  text: unknown,
  charactersMax: number,
): string {
  if (isName(text, charactersMax)) return text;
  throw effectScopeInvalid(
    path,
    `a text of 1 to ${charactersMax} characters that is not blank`,
  );
}

/** True for a text that a column takes and a reader sees. */
export function isName(text: unknown, charactersMax: number): text is string {
  return (
    isStorable(text) && text.trim().length > 0 && text.length <= charactersMax
  );
}

function checkedSession(session: SessionName): SessionRef {
  const given: unknown = session;
  if (
    typeof given !== "string" &&
    (typeof given !== "object" ||
      given === null ||
      typeof (given as { readonly id?: unknown }).id !== "string")
  )
    throw effectScopeInvalid(
      "scope.session",
      "a session id, or an object with id and generation",
    );
  return sessionNamed(session);
}

/** What the column holds for scopes that belong to no session: below every key. */
const noSession = 0;

/** A scope with the key of its session. */
export interface ScopeRoot {
  readonly session: number;
  /** Names the generation, so that whoever goes on with it is fenced when that is deleted. */
  readonly scope: EffectScopeRef;
}

/**
 * A scope whose session stays until the transaction ends; others may do the
 * same, but nobody can delete it meanwhile.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export function* keptScope(scope: EffectScopeRef): Tx<ScopeRoot> {
  if (scope.session === undefined) return { session: noSession, scope };
  const { key, id, generation } = yield* keptSession(scope.session);
  return scope.session.generation === undefined
    ? { session: key, scope: { ...scope, session: { id, generation } } }
    : { session: key, scope };
}

/** The key of a scope's session for reads, which lock nothing. */
export function* livingSessionOf({ session }: EffectScopeRef): Tx<number> {
  return session === undefined
    ? noSession
    : (yield* livingSession(session)).key;
}
