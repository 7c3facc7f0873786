import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { HoldfastError } from "../../../model/errors.ts";
import type { Warning } from "../../../sql/database.ts";
import type { Connection } from "../connection.ts";
import { AnswerLimit } from "./answer-limit.ts";
import { Inquiry } from "./inquiry.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const timeoutMs = 1_000;
const backend = { pid: 7, since: "1" };

/** A statement over a silent connection, beside a server that says what it knows of its backend. */
function silent(
  ask: () => Promise<readonly object[]>,
  open: (asker: Connection) => Promise<Connection> = (asker) => Promise.resolve(asker),
) {
  const asker = { ask, discard: () => undefined, end: () => Promise.resolve() };
  const inquiry = new Inquiry(() => open(asker as unknown as Connection), timeoutMs);
  const warnings: Warning[] = [];
  const rules = { timeoutMs, inquiry, warn: (warning: Warning) => void warnings.push(warning) };
  const ended = { times: 0 };
  const limit = new AnswerLimit(
    rules,
    () => 0,
    () => {
      ended.times += 1;
      limit.stop();
    },
  );
  limit.settle(backend);
  limit.asked("SELECT 1");
  return { limit, ended, warnings, after: (ms: number) => vi.advanceTimersByTimeAsync(ms) };
}

/** What the server answers about the backend. */
function found(kind: string): () => Promise<readonly object[]> {
  return () => Promise.resolve([{ ...backend, kind, waitsFor: "" }]);
}

describe("a connection whose statement is overdue", () => {
  test.each([
    ["waits for its client", found("quiet")],
    ["is gone", () => Promise.resolve([])],
    ["is gone, and another has its number", () => Promise.resolve([{ ...backend, since: "2" }])],
  ])("is ended when its backend %s", async (_, ask) => {
    const { ended, after } = silent(ask);
    await after(1_000);
    expect(ended.times).toBe(0);
    await after(1_000);
    expect(ended.times).toBe(1);
  });

  test("stays while its backend works, which is told once for each statement", async () => {
    const { limit, ended, warnings, after } = silent(found("working"));
    await after(20_000);
    expect(ended.times).toBe(0);
    expect(warnings.map(({ code }) => code)).toEqual(["ANSWER_SLOW"]);
    limit.answered();
    limit.asked("SELECT 2");
    await after(20_000);
    expect(ended.times).toBe(0);
    expect(warnings.map(({ code }) => code)).toEqual(["ANSWER_SLOW", "ANSWER_SLOW"]);
    limit.stop();
  });

  test("has six time limits when the server does not show the state of its backend", async () => {
    const { ended, after } = silent(found("hidden"));
    await after(6_000);
    expect(ended.times).toBe(0);
    await after(1_000);
    expect(ended.times).toBe(1);
  });

  test("has six time limits when the server has no place for whoever asks", async () => {
    const full = new HoldfastError("DATABASE_UNREACHABLE", "Full.", { reason: "53300" });
    const { ended, after } = silent(found("working"), () => Promise.reject(full));
    await after(6_000);
    expect(ended.times).toBe(0);
    await after(1_000);
    expect(ended.times).toBe(1);
  });

  test("is ended at once when the server cannot be reached by another connection either", async () => {
    const away = new HoldfastError("DATABASE_UNREACHABLE", "Away.", { reason: "ECONNREFUSED" });
    const { ended, after } = silent(found("working"), () => Promise.reject(away));
    await after(2_000);
    expect(ended.times).toBe(1);
  });

  test("stays when the answer comes while the server is asked about it", async () => {
    let tell = (): void => undefined;
    const told = new Promise<void>((resolve) => (tell = resolve));
    const { limit, ended, after } = silent(() => told.then(found("quiet")));
    await after(1_500);
    limit.answered();
    limit.asked("SELECT 2");
    tell();
    await after(500);
    limit.answered();
    await after(10_000);
    expect(ended.times).toBe(0);
  });
});
