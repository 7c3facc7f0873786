import type { AwaitOutcome } from "../../../model/await-event.ts";
import {
  awaitEventId,
  awaitSecretBytes,
  awaitToken,
} from "../../../model/await-token.ts";
import { durationMs } from "../../../model/durations.ts";
import type { Duration } from "../../../model/durations.ts";
import type { Encoded } from "../../../model/encoded.ts";
import { hexOf } from "../../../model/hex.ts";
import { optionsOf } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import type { EffectScope } from "../scope.ts";
import { waitNames } from "../../given.ts";
import { replyOf } from "./answering.ts";
import type { AwaitReply } from "./answering.ts";
import { readOutcome, readSecret } from "./context.ts";
import type { AwaitSurroundings } from "./context.ts";
import { awaitEventRevoked } from "./errors.ts";
import { openAwaitEvent } from "./open.ts";
import type { OpenAwaitEvent, OpenedAwaitEvent } from "./open.ts";
import { placeIn } from "./place.ts";
import { endAwaitEvent } from "./settle.ts";
import type { EndAwaitEvent } from "./settle.ts";
import { waitForEvent } from "./wait.ts";

export interface OpenAwaitEventOptions extends WaitOptions {
  /** How long there is to answer: for ever unless told. Counted from when it was first opened. */
  readonly answerWithin?: Duration;
}

/** Opening await-events, waiting for them and giving them up, for whoever runs their scope. */
export interface Awaiting {
  /**
   * Opens an await-event, or finds the one of this scope and key: with the
   * same token and due time, whatever has come of it since.
   * @throws HoldfastError `EFFECT_SCOPE_INVALID`, `AWAIT_EVENT_REVOKED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example const { token } = await awaitEvents.open({ session: "chat-7", kind: "turn", id: "t1" }, "approval", { answerWithin: "1 day" });
   */
  open(
    scope: EffectScope,
    key: string,
    options?: OpenAwaitEventOptions,
  ): Promise<OpenedAwaitEvent>;
  /**
   * What `openAwaitEvent` takes, for who opens it in a transaction of their own.
   * @example
   * const input = awaitEvents.opening(turn, "approval");
   * await database.write("ask", function* () {
   *   const { token } = yield* openAwaitEvent(input);
   *   yield* enqueueBatch(messageWith(token));
   * });
   */
  opening(
    scope: EffectScope,
    key: string,
    options?: Pick<OpenAwaitEventOptions, "answerWithin">,
  ): OpenAwaitEvent;
  /**
   * Resolves with what came of it: at once when that is known, else when it is
   * answered or cancelled by anybody, or its time is over.
   * @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `AWAIT_EVENT_REVOKED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `ABORTED`, `DEADLINE_EXCEEDED`
   */
  wait(
    scope: EffectScope,
    key: string,
    options?: WaitOptions,
  ): Promise<AwaitOutcome<unknown, Error>>;
  /** Gives it up: whoever waits is told so. What has ended before stays. @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  cancel(
    scope: EffectScope,
    key: string,
    wait?: WaitOptions,
  ): Promise<AwaitReply>;
  /** Makes its token worthless; waiting for it fails, unless it has ended before. @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  revoke(
    scope: EffectScope,
    key: string,
    wait?: WaitOptions,
  ): Promise<AwaitReply>;
}

export function awaiting(around: AwaitSurroundings): Awaiting {
  const { database, clock, codec } = around;
  const end = async (
    given: Pick<EndAwaitEvent, "end">,
    scope: EffectScope,
    key: string,
    wait: WaitOptions | undefined,
  ): Promise<AwaitReply> => {
    const now = (): number => clock.now();
    const input = { ...placeIn(scope, key), ...given, now };
    return replyOf(around, await database.write(endAwaitEvent, input, wait));
  };
  return {
    opening: (scope, key, options) =>
      newEvent(
        around,
        scope,
        key,
        optionsOf(options, ["answerWithin"]).answerWithin,
      ),
    async open(scope, key, options) {
      const known = [...waitNames, "answerWithin"] as const;
      const { answerWithin, signal, timeout } = optionsOf(options, known);
      const input = newEvent(around, scope, key, answerWithin);
      return database.write(openAwaitEvent, input, { signal, timeout });
    },
    async wait(scope, key, options) {
      const place = placeIn(scope, key);
      const event = await waitForEvent(around, place, options);
      const outcome = readOutcome(codec, event);
      if (outcome !== undefined) return outcome;
      throw awaitEventRevoked(place);
    },
    cancel: (scope, key, wait) => end({ end: "cancelled" }, scope, key, wait),
    revoke: (scope, key, wait) => end({ end: "revoked" }, scope, key, wait),
  };
}

function newEvent(
  { database, clock, entropy, ownCodec }: AwaitSurroundings,
  scope: EffectScope,
  key: string,
  answerWithin: Duration | undefined,
): OpenAwaitEvent {
  const place = placeIn(scope, key);
  return {
    ...place,
    now: () => clock.now(),
    answerWithinMs:
      answerWithin === undefined
        ? null
        : durationMs(answerWithin, "answerWithin"),
    idIn: (session) =>
      awaitEventId(database.sha256Hex, {
        session,
        scopeKind: place.scope.kind,
        scope: place.scope.id,
        key: place.key,
      }),
    newSecret: () =>
      ownCodec.encode(hexOf(entropy.bytes(awaitSecretBytes))) as Encoded,
    sign: (secret, event) =>
      awaitToken(database.bytes, readSecret(ownCodec, secret), event),
  };
}
