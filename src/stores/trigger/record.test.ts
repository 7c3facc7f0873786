import { expect, test } from "vitest";
import type { TriggerContext } from "./context.ts";
import { recordOccurrence } from "./record.ts";

test("an occurrence that is removed between finding it in the way and reading it can be recorded again", () => {
  const body = recordOccurrence({} as TriggerContext).one({
    key: "o",
    source: { type: "t", key: "k" },
    payload: { encoded: "1" as never, hash: "h" },
    occurredAt: 1,
    at: 1,
  });
  // The insertion meets a row, and then there is none.
  body.next();
  const { value } = body.next();
  expect(value).toMatchObject({ want: "row" });
  expect(() => body.next()).toThrow(
    expect.objectContaining({
      code: "TRANSACTION_CONFLICT",
      retryable: true,
      details: { key: "o" },
    }),
  );
});
