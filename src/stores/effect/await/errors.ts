import { HoldfastError } from "../../../model/errors.ts";
import type { ErrorDetails } from "../../../model/errors.ts";
import { excerpt } from "../../../model/excerpt.ts";
import type { AwaitPlace } from "./event-row.ts";

/** What callers from inside are told, who may know what there is. */

export function awaitEventNotFound(place: AwaitPlace): HoldfastError {
  return new HoldfastError(
    "AWAIT_EVENT_NOT_FOUND",
    `There is no ${awaitTitle(place)}. Open it before it is awaited or ended.`,
    namesOf(place),
  );
}

export function awaitEventRevoked(place: AwaitPlace): HoldfastError {
  return new HoldfastError(
    "AWAIT_EVENT_REVOKED",
    `The ${awaitTitle(place)} was revoked: nobody can answer it any more. ` +
      "Stop waiting for it; open one under another key if the answer is still wanted.",
    namesOf(place),
  );
}

/** Such as `await-event "approval" of turn "t7"`. */
export function awaitTitle({ scope, key }: AwaitPlace): string {
  return `await-event ${excerpt(key)} of ${scope.kind} ${excerpt(scope.id)}`;
}

function namesOf({ scope, key }: AwaitPlace): ErrorDetails {
  return { scopeKind: scope.kind, scope: scope.id, key };
}
