import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { HoldfastError } from "../../model/errors.ts";
import type { ErrorCode } from "../../model/errors.ts";
import { done, operation } from "../../sql/operation.ts";
import { callable } from "../callable.ts";
import { Meters } from "../meters.ts";
import { Call } from "./call.ts";
import type { Connection } from "./connection.ts";
import { Dispatcher } from "./dispatcher.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const alone = operation("alone", {
  key: (id: string) => id,
  *one(id) {
    return id;
  },
});

const together = operation("together", {
  isolation: "readCommitted",
  key: (id: string) => id,
  *one(id) {
    return id;
  },
  *many(ids) {
    return ids.map((id) => done(id));
  },
});

/** A connection whose transactions begin as given and do nothing. */
function connection(begin: () => Promise<void>): Connection {
  const made = {
    isLost: false,
    failure: undefined,
    begin,
    beginRead: () => undefined,
    readRefusal: () =>
      begin()
        .then(() => undefined)
        .catch((error: unknown) => error),
    commit: () => Promise.resolve(undefined),
    rollback: () => Promise.resolve(),
    discard: () => (made.isLost = true),
    end: () => Promise.resolve(),
  };
  return made as unknown as Connection;
}

function dispatcherOf(begin: () => Promise<void>): {
  readonly dispatcher: Dispatcher;
  readonly opened: () => number;
} {
  let opened = 0;
  const dispatcher = new Dispatcher({
    open: () => {
      opened += 1;
      // A loop without a pause would never let the test end.
      return opened > 1_000 ? new Promise(() => undefined) : Promise.resolve(connection(begin));
    },
    poolSize: 4,
    queueCallsMax: 100,
    setFormLanes: 2,
    meters: new Meters(),
    warn: () => undefined,
    beforeCommit: undefined,
    onCommitted: () => undefined,
  });
  return { dispatcher, opened: () => opened };
}

/** The answers to the caller: the value, or the code of the error. */
function submit(
  dispatcher: Dispatcher,
  what: typeof alone,
  id: string,
  access: "read" | "write" = "write",
): { readonly told: unknown[] } {
  const told: unknown[] = [];
  const call = new Call(
    callable(what, id),
    access,
    access === "write" ? (what.many as never) : undefined,
    id,
    (value) => told.push(value),
    (error) => told.push((error as HoldfastError).code),
  );
  dispatcher.submit(call);
  return { told };
}

function failing(code: ErrorCode): () => Promise<void> {
  return () => Promise.reject(new HoldfastError(code, "no"));
}

describe("a BEGIN that fails at every attempt", () => {
  test.each([
    ["alone", alone, "write"],
    ["together", together, "write"],
    ["read", alone, "read"],
  ] as const)("for want of a connection is reported in the end (%s)", async (_, what, access) => {
    const { dispatcher, opened } = dispatcherOf(failing("CONNECTION_LOST"));
    const { told } = submit(dispatcher, what, "a", access);
    await vi.advanceTimersByTimeAsync(0);
    expect(opened()).toBeLessThan(5);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(told).toEqual(["CONNECTION_LOST"]);
    expect(opened()).toBeLessThan(30);
  });

  test.each([
    ["alone", alone, "write"],
    ["together", together, "write"],
    ["read", alone, "read"],
  ] as const)("because the server refuses it is reported at once (%s)", async (_, what, access) => {
    const { dispatcher, opened } = dispatcherOf(failing("STATEMENT_FAILED"));
    const { told } = submit(dispatcher, what, "a", access);
    await vi.advanceTimersByTimeAsync(1);
    expect(told).toEqual(["STATEMENT_FAILED"]);
    expect(opened()).toBeLessThanOrEqual(2);
  });
});

describe("writes that were stopped", () => {
  test("are refused, waiting ones included, and reads continue", async () => {
    let letGo = (): void => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const { dispatcher } = dispatcherOf(() => held);
    const running = [1, 2, 3, 4].map((n) => submit(dispatcher, alone, `r${n}`));
    await vi.advanceTimersByTimeAsync(1);
    const waiting = submit(dispatcher, alone, "a");
    const behind = submit(dispatcher, alone, "a");
    const inSet = submit(dispatcher, together, "b");
    const read = submit(dispatcher, alone, "c", "read");
    dispatcher.stopWrites(new HoldfastError("SCHEMA_NEWER", "no"));
    expect(() => submit(dispatcher, alone, "late")).toThrow(
      expect.objectContaining({ code: "SCHEMA_NEWER" }),
    );
    letGo();
    await vi.advanceTimersByTimeAsync(1);
    expect(running.map(({ told }) => told)).toEqual([["r1"], ["r2"], ["r3"], ["r4"]]);
    for (const { told } of [waiting, behind, inSet]) expect(told).toEqual(["SCHEMA_NEWER"]);
    expect(read.told).toEqual(["c"]);
    await dispatcher.idle();
  });
});

describe("calls that got in each other's way before the server went away", () => {
  test("leave nothing behind that keeps later calls of their name waiting", async () => {
    let server: "crowded" | "away" | "back" = "crowded";
    let conflictsLeft = 6;
    const made = (): Connection => {
      const conflict = new HoldfastError("TRANSACTION_CONFLICT", "no");
      const lost = new HoldfastError("CONNECTION_LOST", "no");
      const fails = (failure: HoldfastError): Promise<never> => {
        Object.assign(session, { isLost: failure === lost, failure });
        return Promise.reject(failure);
      };
      const session = Object.assign(
        connection(() => (server === "away" ? fails(lost) : Promise.resolve())),
        {
          commit(): Promise<number> {
            if (server === "away") return fails(lost);
            if (server === "back" && conflictsLeft === 0) return Promise.resolve(1);
            conflictsLeft -= Number(server === "back");
            return fails(conflict);
          },
        },
      );
      return session;
    };
    const dispatcher = new Dispatcher({
      open: () =>
        server === "away"
          ? Promise.reject(new HoldfastError("DATABASE_ACCESS_DENIED", "no"))
          : Promise.resolve(made()),
      poolSize: 4,
      queueCallsMax: 100,
      setFormLanes: 2,
      meters: new Meters(),
      warn: () => undefined,
      beforeCommit: undefined,
      onCommitted: () => undefined,
    });
    const some = (ids: readonly string[]) => ids.map((id) => submit(dispatcher, alone, id).told);
    const early = some(["a", "b", "c", "d"]);
    await vi.advanceTimersByTimeAsync(500);
    expect(early).toEqual([[], [], [], []]);
    server = "away";
    await vi.advanceTimersByTimeAsync(60_000);
    expect(early.flat()).toHaveLength(4);
    server = "back";
    const late = some(["e", "f", "g"]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(late).toEqual([["e"], ["f"], ["g"]]);
    await dispatcher.idle();
  });
});
