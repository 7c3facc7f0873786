import { checkedEffect } from "../scope.ts";
import type { EffectScope } from "../scope.ts";
import type { AwaitPlace } from "./event-row.ts";

/** Where a caller means: named as an effect is. @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `ID_MALFORMED` */
export function placeIn(scope: EffectScope, key: string): AwaitPlace {
  const { scope: ref, replayKey } = checkedEffect(scope, key);
  return { scope: ref, key: replayKey };
}
