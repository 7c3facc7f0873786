import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { where } from "../run/step-context.ts";
import type { Notice } from "../runtime-event.ts";
import { watchRejections } from "./unhandled-rejections.ts";

const event = "unhandledRejection";
const reason = new Error("of the app");

/** Emits a rejection as Node does; throws what a listener throws. */
function reject(given: unknown = reason): { readonly promise: Promise<never> } {
  const promise = Promise.reject(given);
  promise.catch(() => undefined);
  process.emit(event, given, promise);
  return { promise };
}

const handled = "rejectionHandled";

/** Emits the late await as Node does; returns the warnings. */
async function awaitLate(promise: Promise<unknown>): Promise<readonly string[]> {
  const warned: string[] = [];
  const listener = ({ name }: Error): void => void warned.push(name);
  process.on("warning", listener);
  process.emit(handled, promise);
  await setImmediate();
  process.off("warning", listener);
  return warned;
}

/** A listener of another copy of the package. */
function copy(isOfItsRun: boolean) {
  const mark = Symbol.for("holdfast.isRejectionOfRun");
  return Object.assign(vi.fn(), { [mark]: () => isOfItsRun });
}

describe("a rejection that nobody awaits", () => {
  let others: NodeJS.UnhandledRejectionListener[];
  let told: Notice[];
  let stop: () => void;

  // The test runner listens, too.
  beforeEach(() => {
    others = process.listeners(event);
    process.removeAllListeners(event);
    told = [];
    stop = watchRejections((notice) => told.push(notice));
  });
  afterEach(() => {
    stop();
    for (const listener of others) process.on(event, listener);
    vi.unstubAllEnvs();
  });

  test("inside a run is told of, whatever was thrown", () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    where.run({ id: "a", step: "s" }, () => reject());
    where.run({ id: "b" }, () => reject(proxy));
    expect(told.map(({ message }) => message)).toEqual([
      'In run a, step "s" a promise that no code awaits was rejected: Error: of the app',
      "In run b a promise that no code awaits was rejected: The thrown value cannot be read.",
    ]);
  });

  test("outside is thrown, as Node does without a listener", () => {
    expect(() => reject()).toThrow(reason);
    expect(told).toEqual([]);
    stop();
    expect(process.listenerCount(event)).toBe(0);
  });

  test("outside is left to another listener", () => {
    const listener = vi.fn();
    process.on(event, listener);
    reject();
    process.off(event, listener);
    expect(listener).toHaveBeenCalledOnce();
  });

  test("outside is thrown beside another copy of this package, which is no listener of the app's", () => {
    const other = copy(false);
    process.on(event, other);
    expect(() => reject()).toThrow(reason);
    process.off(event, other);
    process.prependListener(event, other);
    // The other listener throws it then.
    expect(() => reject()).not.toThrow();
    process.off(event, other);
  });

  test("inside a run of another copy is none of ours", () => {
    const other = copy(true);
    process.on(event, other);
    expect(() => reject()).not.toThrow();
    expect(other).toHaveBeenCalledOnce();
    process.off(event, other);
    expect(told).toEqual([]);
  });

  test("inside a run is told of once, also when it is awaited late", async () => {
    const { promise } = where.run({ id: "a" }, () => reject());
    expect(await awaitLate(promise)).toEqual([]);
    expect(told).toHaveLength(1);
  });

  test("outside is warned of by Node when it is awaited late, and once beside another copy", async () => {
    const foreign = Promise.resolve();
    expect(await awaitLate(foreign)).toEqual(["PromiseRejectionHandledWarning"]);
    const other = copy(false);
    process.prependListener(handled, other);
    // The other listener warns then.
    expect(await awaitLate(foreign)).toEqual([]);
    process.off(handled, other);
    const listener = vi.fn();
    process.on(handled, listener);
    expect(await awaitLate(foreign)).toEqual([]);
    process.off(handled, listener);
    stop();
    expect(process.listenerCount(handled)).toBe(0);
  });

  // In strict mode Node has thrown it before it asks.
  test.each(["warn", "none", "strict"])(
    "outside is thrown by nobody else where Node was told %s",
    (mode) => {
      vi.stubEnv("NODE_OPTIONS", `--no-warnings --unhandled-rejections=${mode}`);
      expect(() => reject()).not.toThrow();
    },
  );

  test("outside is thrown where Node was told so", () => {
    vi.stubEnv("NODE_OPTIONS", "--unhandled-rejections=throw");
    expect(() => reject()).toThrow(reason);
  });
});
