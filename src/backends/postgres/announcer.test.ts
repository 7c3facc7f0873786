import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { HoldfastError } from "../../model/errors.ts";
import type { ErrorCode } from "../../model/errors.ts";
import { Announcer } from "./announcer.ts";
import type { Connection } from "./connection.ts";
import { ServiceSession } from "./service-session.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** An announcer on a server that answers as set, and the number of its requests. */
function announcerOn(server: { refusal: ErrorCode | undefined }): {
  readonly announcer: Announcer;
  readonly attempts: () => number;
} {
  let attempts = 0;
  const connection = {
    isLost: false,
    end: () => Promise.resolve(),
    query: () => {
      attempts += 1;
      return server.refusal === undefined
        ? Promise.resolve({ rows: [], count: 0 })
        : Promise.reject(new HoldfastError(server.refusal, "no"));
    },
  } as unknown as Connection;
  const session = new ServiceSession(() => Promise.resolve(connection), {});
  const announcer = new Announcer(session, "channel", "me", () => undefined);
  return { announcer, attempts: () => attempts };
}

describe("telling others of commits", () => {
  test("is tried about once a minute where the server has no NOTIFY", async () => {
    const server = { refusal: "STATEMENT_FAILED" as ErrorCode | undefined };
    const { announcer, attempts } = announcerOn(server);
    for (let second = 0; second < 3_600; second += 1) {
      announcer.tell(second, [{ operation: "op", key: "k" }]);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(attempts()).toBeLessThan(80);
    expect(attempts()).toBeGreaterThan(40);
    server.refusal = undefined;
    await vi.advanceTimersByTimeAsync(60_000);
    const before = attempts();
    announcer.tell(1, [{ operation: "op", key: "k" }]);
    await vi.advanceTimersByTimeAsync(0);
    expect(attempts()).toBe(before + 1);
  });

  test("is tried a few times while the server is away, then left to the poll", async () => {
    const server = { refusal: "CONNECTION_LOST" as ErrorCode | undefined };
    const { announcer, attempts } = announcerOn(server);
    announcer.tell(1, []);
    await vi.advanceTimersByTimeAsync(3_600_000);
    const tried = attempts();
    expect(tried).toBeGreaterThan(2);
    expect(tried).toBeLessThan(20);
    announcer.tell(2, []);
    await vi.advanceTimersByTimeAsync(0);
    expect(attempts()).toBe(tried + 1);
  });

  test("does not delay close once it has failed", async () => {
    const { announcer, attempts } = announcerOn({ refusal: "CONNECTION_LOST" });
    announcer.tell(1, []);
    await vi.advanceTimersByTimeAsync(0);
    expect(attempts()).toBe(1);
    await announcer.close();
    expect(attempts()).toBe(1);
  });
});
