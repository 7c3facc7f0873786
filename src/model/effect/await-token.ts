import type { Branded } from "../ids/brand.ts";
import type { ByteTools } from "../values/byte-tools.ts";
import { HoldfastError } from "../errors.ts";
import { bytesOfHex } from "../values/hex.ts";
import { isSameToken } from "../ids/token.ts";

/**
 * The id of an await-event. It follows from session, scope and key, so opening the event again
 * gives the same id.
 */
export type AwaitEventId = Branded<"AwaitEventId">;

const idDigits = 32;

/**
 * The facts that determine an id. The session is the row of one generation, so a deleted session
 * leaves no ids behind.
 */
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

/** An await-event as its tokens identify it. */
export interface SignedEvent {
  readonly id: AwaitEventId;
  /**
   * The key of its row. An event that was removed and opened again has another key, so its old
   * tokens are not valid.
   */
  readonly rowKey: number;
}

/**
 * Returns the token that entitles its bearer to answer an await-event: its id, and a signature that
 * needs the secret. While the event exists its token stays the same, so it can be issued again
 * after a crash.
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

/**
 * Returns the id that a token names. Only the secret tells whether the token is genuine. @throws
 * HoldfastError `AWAIT_TOKEN_INVALID`
 */
export function idInToken(token: string): AwaitEventId {
  const [, id] = (typeof token === "string" && tokenForm.exec(token)) || [];
  if (id === undefined) throw tokenInvalid();
  return id as AwaitEventId;
}

/** Checks that a token was made with this secret for this row, in constant time. */
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

/** The error for any invalid token, the same for every fault: guessing reveals nothing. */
export function tokenInvalid(): HoldfastError {
  return new HoldfastError(
    "AWAIT_TOKEN_INVALID",
    "This token is not valid: it was not issued here, it was revoked, or its await-event no longer exists. Nothing was changed. Ask its issuer for a new one.",
  );
}
