import { describe, expect, test } from "vitest";
import { heardIn, payloadsOf } from "./payloads.ts";

/** A payload as the server completes it. */
const sent = (payload: string): string => `{"by":900${payload}`;

describe("notifications", () => {
  test("name the transactions and changes of several commits", () => {
    const payloads = payloadsOf("me", [
      { tx: 7, changes: [{ operation: "append", key: 'a "b"' }] },
      {
        tx: 8,
        changes: [
          { operation: "append", key: "c" },
          { operation: "finish", key: "c" },
        ],
      },
    ]);
    expect(payloads.map(sent)).toEqual([
      '{"by":900,"from":"me","tx":[7,8],"changes":[["append","a \\"b\\""],["append","c"],["finish","c"]]}',
    ]);
    expect(payloads.map((payload) => heardIn(sent(payload)))).toEqual([
      {
        from: "me",
        transactions: [900, 7, 8],
        changes: [
          { operation: "append", key: 'a "b"' },
          { operation: "append", key: "c" },
          { operation: "finish", key: "c" },
        ],
      },
    ]);
  });

  test("stay below what Postgres takes, in bytes, and lose nothing", () => {
    const changes = Array.from({ length: 500 }, (_, index) => ({
      operation: "append",
      key: `${index}é`.repeat(1 + (index % 40)),
    }));
    const payloads = payloadsOf("0123456789abcdef", [{ tx: 2 ** 53 - 1, changes }]).map(sent);
    expect(payloads.length).toBeGreaterThan(3);
    for (const payload of payloads) expect(Buffer.byteLength(payload)).toBeLessThan(8_000);
    expect(payloads.flatMap((payload) => heardIn(payload)?.changes ?? [])).toEqual(changes);
  });

  test("say that something changed when it cannot be named", () => {
    const heard = payloadsOf("me", [
      { tx: 1, changes: [{ operation: "a", key: "x" }] },
      { tx: 2, changes: [] },
      { tx: 3, changes: [{ operation: "b", key: "y".repeat(8_000) }] },
      { tx: 4, changes: [{ operation: "c", key: "z" }] },
    ]).map((payload) => heardIn(sent(payload)));
    expect(heard).toEqual([
      {
        from: "me",
        transactions: [900, 1],
        changes: [{ operation: "a", key: "x" }],
      },
      { from: "me", transactions: [900, 2], changes: undefined },
      { from: "me", transactions: [900, 3], changes: undefined },
      {
        from: "me",
        transactions: [900, 4],
        changes: [{ operation: "c", key: "z" }],
      },
    ]);
  });

  test.each(["", "null", "{}", '{"from":"x"}', '{"by":"1","from":"x","tx":[]}'])(
    "of others are not ours: %s",
    (payload) => expect(heardIn(payload)).toBeUndefined(),
  );
});
