import { idInToken, isGenuine } from "../../../model/await-token.ts";
import type { AwaitOutcome } from "../../../model/await-event.ts";
import type { Encoded } from "../../../model/encoded.ts";
import { storedError } from "../../../model/stored-error.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { readOutcome, readSecret } from "./context.ts";
import type { AwaitSurroundings } from "./context.ts";
import { resolveAwaitEvent } from "./settle.ts";
import type { AwaitAnswer, Settlement } from "./settle.ts";

/** What whoever ends an await-event is told. */
export type AwaitReply =
  /** It ended this way, by this call. */
  | { readonly kind: "accepted" }
  /** It had ended this way already: the same call was made before. */
  | { readonly kind: "replayed" }
  /** It had ended before, in this way; undefined when it was revoked. */
  | {
      readonly kind: "late";
      readonly outcome: AwaitOutcome<unknown, Error> | undefined;
    };

/** Answering from outside, by token: whoever has one need not know sessions and scopes. */
export interface AwaitAnswers {
  /**
   * Answers with a value. The first answer wins, also when nobody waits yet;
   * an equal one is `replayed`, any other is `late` and told what won.
   * @throws HoldfastError `AWAIT_TOKEN_INVALID` for a token that is wrong, revoked or of a deleted session; `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   * @example await awaitEvents.resolve(token, { approved: true });
   */
  resolve(
    token: string,
    value: unknown,
    wait?: WaitOptions,
  ): Promise<AwaitReply>;
  /** Answers with an error, of which name, message, code and causes are kept. @throws HoldfastError `AWAIT_TOKEN_INVALID` */
  fail(token: string, error: unknown, wait?: WaitOptions): Promise<AwaitReply>;
}

export function awaitAnswers(around: AwaitSurroundings): AwaitAnswers {
  const { database, clock, codec, ownCodec } = around;
  const answer = async (
    token: string,
    given: AwaitAnswer,
    wait: WaitOptions | undefined,
  ): Promise<AwaitReply> => {
    const settlement = await database.write(
      resolveAwaitEvent,
      {
        id: idInToken(token),
        isGenuine: (secret, rowKey) =>
          isGenuine(
            database.bytes,
            readSecret(ownCodec, secret),
            rowKey,
            token,
          ),
        answer: given,
        now: () => clock.now(),
      },
      wait,
    );
    return replyOf(around, settlement);
  };
  return {
    resolve: async (token, value, wait) =>
      answer(
        token,
        {
          kind: "resolved",
          payload: codec.encode(value) as Encoded,
          hash: codec.hash("await-value", 1, value),
        },
        wait,
      ),
    fail: async (token, error, wait) =>
      answer(
        token,
        {
          kind: "failed",
          payload: ownCodec.encode(storedError(error)) as Encoded,
          // Stacks differ between machines; the same failure told again is the same.
          hash: ownCodec.hash(
            "await-error",
            1,
            storedError(error, { stack: false }),
          ),
        },
        wait,
      ),
  };
}

export function replyOf(
  { codec }: AwaitSurroundings,
  { kind, event }: Settlement,
): AwaitReply {
  return kind === "accepted" || kind === "replayed"
    ? { kind }
    : { kind: "late", outcome: readOutcome(codec, event) };
}
