import { effectScopeInvalid } from "../../../model/effect-errors.ts";
import { checkedEffect } from "../checks.ts";
import { checkedScope } from "../scope.ts";
import type { EffectScope } from "../scope.ts";
import type { SessionName } from "../../session/session-name.ts";
import type { SessionRef } from "../../session/session-row.ts";
import type { AwaitPlace } from "./event-row.ts";

/** Where a caller means: named as an effect is. @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `ID_MALFORMED` */
export function placeIn(scope: EffectScope, key: string): AwaitPlace {
  const { scope: ref, replayKey } = checkedEffect(scope, key);
  return { scope: ref, key: replayKey };
}

/** The session a caller means; null is for scopes that belong to none. @throws HoldfastError `EFFECT_SCOPE_INVALID`, `ID_MALFORMED` */
export function sessionOrNone(
  session: SessionName | null,
): SessionRef | undefined {
  if (session === null) return undefined;
  const ref = checkedScope({ kind: "session", id: "any", session }).session;
  if (ref !== undefined) return ref;
  throw effectScopeInvalid("session", "a session, or null for none");
}
