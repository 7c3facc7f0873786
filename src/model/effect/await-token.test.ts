import { createHash, createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { awaitEventId, awaitToken, idInToken, isAwaitSecret, isGenuine } from "./await-token.ts";

const hex = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");
const tools = {
  hmacSha256Hex: (key: Uint8Array, message: Uint8Array) =>
    createHmac("sha256", key).update(message).digest("hex"),
};
const secret = "0f".repeat(32);
const identity = {
  session: 7,
  scopeKind: "turn",
  scope: "t1",
  key: "approval",
};

describe("the id and the token of an await-event", () => {
  test("are the same on every machine and in every release", () => {
    const id = awaitEventId(hex, identity);
    expect(id).toBe("await_fe2eeec76c2bb354d6b28d8f29ccecaa");
    expect(awaitToken(tools, secret, { id, rowKey: 3 })).toBe(
      "await_fe2eeec76c2bb354d6b28d8f29ccecaa.fc9e5201853a76abe750bde49ddb2b4058469271f0496048fb36b182922744ca",
    );
  });

  test("differ with every part, also when the parts read the same together", () => {
    const ids = [
      identity,
      { ...identity, session: 0 },
      { ...identity, scopeKind: "drain" },
      { ...identity, scope: "t2" },
      { ...identity, key: "approval2" },
      { ...identity, scope: "t1approval", key: "" },
      { ...identity, scope: "", key: "t1approval" },
    ].map((one) => awaitEventId(hex, one));
    expect(new Set(ids).size).toBe(7);
  });

  test("a token is genuine with its own secret and row alone", () => {
    const id = awaitEventId(hex, identity);
    const token = awaitToken(tools, secret, { id, rowKey: 3 });
    expect(idInToken(token)).toBe(id);
    expect(isGenuine(tools, secret, 3, token)).toBe(true);
    expect(isGenuine(tools, "0e".repeat(32), 3, token)).toBe(false);
    expect(isGenuine(tools, secret, 4, token)).toBe(false);
  });

  test.each(["", "x", "await_0.0", `await_${"0".repeat(32)}`])("%j is no token", (text) => {
    expect(() => idInToken(text)).toThrow(
      expect.objectContaining({ code: "AWAIT_TOKEN_INVALID", details: {} }),
    );
  });

  test("a secret is 32 bytes in hexadecimal", () => {
    expect(isAwaitSecret(secret)).toBe(true);
    for (const wrong of [secret.slice(1), `${secret}0`, 7, null, "g".repeat(64)])
      expect(isAwaitSecret(wrong)).toBe(false);
  });
});
