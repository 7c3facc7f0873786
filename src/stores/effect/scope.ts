import { effectInvalid, effectScopeInvalid } from "../../model/effect/errors.ts";
import { draftOf, isStorable } from "../../model/shape.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";
import type { Interest } from "../../sql/database.ts";
import type { Tx } from "../../sql/operation.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { keptSession, livingSession, type SessionRef } from "../session-row.ts";
import type { EffectRef } from "./effect-row.ts";

/**
 * Work that is run again as a whole, and whose effects therefore belong together: a turn of a
 * session, a process, an operation of the host. Scopes of different kinds or sessions share
 * nothing, even if their ids are equal.
 */
export interface EffectScope {
  /** A name of your own, such as "turn", "drain", "process" or "operation". */
  readonly kind: string;
  readonly id: string;
  /** The session of the scope; removing the session removes the effects of the scope. */
  readonly session?: SessionName | undefined;
}

/** A validated scope. */
export interface EffectScopeRef {
  readonly kind: string;
  readonly id: string;
  readonly session: SessionRef | undefined;
}

const kindCharactersMax = 64;
const idCharactersMax = 256;
const keyCharactersMax = 512;

/** @throws HoldfastError `EFFECT_SCOPE_INVALID`, and for the session `ID_MALFORMED` or `OPTION_INVALID` */
export function checkedScope(scope: EffectScope): EffectScopeRef {
  if (!isRecord(scope)) throw effectScopeInvalid("scope", "an object with kind and id");
  const { kind, id, session } = draftOf<EffectScope>("the scope", scope, ["kind", "id", "session"]);
  return {
    kind: checkedPart("scope.kind", kind, kindCharactersMax),
    id: checkedPart("scope.id", id, idCharactersMax),
    session: session === undefined ? undefined : checkedSession("scope.session", session),
  };
}

function checkedPart(path: string, text: unknown, charactersMax: number): string {
  if (isName(text, charactersMax)) return text;
  throw effectScopeInvalid(path, `a non-blank string of 1 to ${charactersMax} characters`);
}

/** True for a text that a column can store and a reader can see. */
export function isName(text: unknown, charactersMax: number): text is string {
  return isStorable(text) && text.trim().length > 0 && text.length <= charactersMax;
}

function checkedSession(path: string, session: SessionName): SessionRef {
  const given: unknown = session;
  if (typeof given !== "string" && (!isRecord(given) || typeof given["id"] !== "string"))
    throw effectScopeInvalid(path, "a session id, or an object with id and generation");
  return sessionNamed(session);
}

/**
 * Validates the session that a caller names; null stands for scopes without a session.
 * @throws HoldfastError `EFFECT_SCOPE_INVALID`, `ID_MALFORMED`
 */
export function sessionOrNone(session: SessionName | null): SessionRef | undefined {
  if (session === null) return undefined;
  if (session !== undefined) return checkedSession("session", session);
  throw effectScopeInvalid("session", "a session, or null for none");
}

/**
 * Validates the names of an effect.
 * @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `ID_MALFORMED`
 */
export function checkedEffect(scope: EffectScope, key: string, attempt: number = 1): EffectRef {
  const named = checkedPlace("effect", scope, key);
  if (!Number.isSafeInteger(attempt) || attempt < 1)
    throw effectInvalid("attempt", "a whole number of 1 or more");
  return { scope: named.scope, replayKey: named.key, attempt };
}

/** The scope and key of an effect or an await-event. */
export interface ScopedPlace {
  readonly scope: EffectScopeRef;
  readonly key: string;
}

/** @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `ID_MALFORMED` */
export function checkedPlace(
  subject: "effect" | "await-event",
  scope: EffectScope,
  key: string,
): ScopedPlace {
  const ref = checkedScope(scope);
  if (isName(key, keyCharactersMax)) return { scope: ref, key };
  throw effectInvalid("key", `a non-blank string of 1 to ${keyCharactersMax} characters`, subject);
}

/** The aggregate of an operation in a scope: the id of its session, or else of the scope. */
export function aggregateOf({ scope }: { readonly scope: EffectScopeRef }): string {
  return scope.session?.id ?? scope.id;
}

/** The deletion of a scope's session, which also ends every wait in that scope. */
export function deletionOf(session: SessionRef | undefined): readonly Interest[] {
  return session === undefined ? [] : [{ operation: "deleteSession", key: session.id }];
}

/** The column value for scopes without a session; lower than every key. */
const noSession = 0;

interface InSession {
  readonly session: SessionRef | undefined;
}

/** A scope with the key of its session. */
export interface ScopeRoot {
  readonly session: number;
  /**
   * Names the generation, so that later work under this scope is fenced once that generation is
   * deleted.
   */
  readonly scope: EffectScopeRef;
}

/**
 * Keeps the session of a scope until the transaction ends. Other transactions may keep it too, but
 * none can delete it while it is kept.
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

/** Does the same for callers that only need the key of the session. */
export function* keptSessionOf({ session }: InSession): Tx<number> {
  return session === undefined ? noSession : (yield* keptSession(session)).key;
}

/**
 * The key of a scope's session, for reads, which lock nothing.
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export function* livingSessionOf({ session }: InSession): Tx<number> {
  return session === undefined ? noSession : (yield* livingSession(session)).key;
}
