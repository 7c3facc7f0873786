import type { Branded } from "../ids/brand.ts";
import type { ByteTools } from "../values/byte-tools.ts";
import { HoldfastError } from "../errors.ts";
import { bytesOfHex } from "../values/hex.ts";
import { isSameToken } from "../ids/token.ts";

/** Names an await-event. Follows from its session, scope and key, so it is the same whenever it is opened. */
export type AwaitEventId = Branded<"AwaitEventId">;

const idDigits = 32;

/** Whatever an id follows from. The session is the row of one generation: one that was deleted leaves no ids behind. */
export interface AwaitIdentity {
  readonly session: number;
  readonly scopeKind: string;
  readonly scope: string;
  readonly key: string;
}

export function awaitEventId(
  sha256Hex: (text: string) => string,
  { session, scopeKind, scope, key }: AwaitIdentity,
): AwaitEventId {
  const name = JSON.stringify([session, scopeKind, scope, key]);
  const digest = sha256Hex(`holdfast:await-event:1:${name}`);
  return `await_${digest.slice(0, idDigits)}` as AwaitEventId;
}

const tokenForm = /^(await_[0-9a-f]{32})\.([0-9a-f]{64})$/;

/** An await-event as tokens know it. */
export interface SignedEvent {
  readonly id: AwaitEventId;
  /** The key of its row. One that was forgotten and opened again has another: old tokens are not for it. */
  readonly rowKey: number;
}

/**
 * What is given to those who may answer an await-event: its id, and a signature
 * that nobody without the secret can make. As long as the event is there it
 * has the same token, so it can be handed out again after a crash.
 */
export function awaitToken(
  tools: Pick<ByteTools, "hmacSha256Hex">,
  secret: string,
  { id, rowKey }: SignedEvent,
): string {
  const text = `holdfast:await-token:1:${rowKey}:${id}`;
  const message = new TextEncoder().encode(text);
  return `${id}.${tools.hmacSha256Hex(bytesOfHex(secret), message)}`;
}

/** The id that a token names; whether the token is genuine only the secret can tell. @throws HoldfastError `AWAIT_TOKEN_INVALID` */
export function idInToken(token: string): AwaitEventId {
  const [, id] = (typeof token === "string" && tokenForm.exec(token)) || [];
  if (id === undefined) throw tokenInvalid();
  return id as AwaitEventId;
}

/** Whether a token was made with this secret for this row. Takes the same time wherever it differs. */
export function isGenuine(
  tools: Pick<ByteTools, "hmacSha256Hex">,
  secret: string,
  rowKey: number,
  token: string,
): boolean {
  const id = idInToken(token);
  return isSameToken(awaitToken(tools, secret, { id, rowKey }), token);
}

const secretForm = /^[0-9a-f]{64}$/;

export const awaitSecretBytes = 32;

export function isAwaitSecret(value: unknown): value is string {
  return typeof value === "string" && secretForm.test(value);
}

/** Says the same whatever is wrong, so that a caller who guesses learns nothing. */
export function tokenInvalid(): HoldfastError {
  return new HoldfastError(
    "AWAIT_TOKEN_INVALID",
    "This token answers nothing: it was not given out here, it was revoked, or what it answers is gone. Nothing was changed. Ask whoever gave it to you for a new one.",
  );
}
