import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import type { RunId } from "../../../src/model/ids/prefixed-id.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import type { LockOptions } from "../../../src/stores/execution/lock/terms.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { childRequested, step } from "./execution-events.ts";
import { T0, ann, byAnn, onExecutions, refusal } from "./fixture.ts";

type Call = (store: Executions) => Promise<unknown>;

const malformed = ["", "a b", "E_123", "Delay_a", "a.x", "a.n:x_0", "ä"];
const long = "x".repeat(129);

function create(options: object): Call {
  return (store) => store.create({ function: "f", ...options });
}

function locking(options: object): Call {
  const given = { ...byAnn, ...options } as LockOptions;
  return (store) => store.lock("a", 1, given);
}

function pending(options: object): Call {
  return (store) => store.lockPending({ ...byAnn, functions: ["f"], limit: 1, ...options });
}

function append(...events: readonly object[]): Call {
  return (store) => store.append("a", 1, events as readonly GivenEvent[]);
}

/** Every method that takes an execution's id, with all else right. */
const byId: Readonly<Record<string, (store: Executions, id: string) => Promise<unknown>>> = {
  create: (store, id) => store.create({ id, function: "f" }),
  createLocked: (store, id) => store.createLocked({ id, function: "f" }, byAnn),
  append: (store, id) => store.append(id, 1, [step("one")]),
  finish: (store, id) => store.finish(id, 1, { kind: "timedOut" }),
  "fork from": (store, id) => store.fork(id, 0),
  "fork to": (store, id) => store.fork("a", 0, { id }),
  "retry from": (store, id) => store.retry(id),
  "retry to": (store, id) => store.retry("a", { id }),
  lock: (store, id) => store.lock(id, 1, byAnn),
  unlock: (store, id) => store.unlock(id, 1, { holder: ann, reason: "r" }),
  pause: (store, id) => store.pause(id),
  unpause: (store, id) => store.unpause(id),
  unpark: (store, id) => store.unpark(id),
  cancel: (store, id) => store.cancel(id),
  cancelActivity: (store, id) => store.cancelActivity(id),
  resolve: (store, id) => store.resolve(id, { kind: "timedOut" }),
  signal: (store, id) => store.signal(id, "go", 1),
  receive: (store, id) => store.receive(id, "go", 1),
  setProgress: (store, id) => store.setProgress(id, 1),
  cancelDelay: (store, id) => store.cancelDelay(id),
  pauseDelay: (store, id) => store.pauseDelay(id),
  unpauseDelay: (store, id) => store.unpauseDelay(id),
};

const byVersion: Readonly<
  Record<string, (store: Executions, version: number) => Promise<unknown>>
> = {
  append: (store, version) => store.append("a", version, [step("one")]),
  finish: (store, version) => store.finish("a", version, { kind: "timedOut" }),
  fork: (store, version) => store.fork("a", version),
  lock: (store, version) => store.lock("a", version, byAnn),
  unlock: (store, version) => store.unlock("a", version, { holder: ann, reason: "r" }),
  receive: (store, version) => store.receive("a", "go", version),
};

const others: readonly (readonly [string, string, Call])[] = [
  ["an empty function", "NAME_INVALID", create({ function: "" })],
  ["a function with a space", "NAME_INVALID", create({ function: "a b" })],
  ["a long function", "NAME_INVALID", create({ function: long })],
  ["a start at NaN", "TIME_OUT_OF_RANGE", create({ startAt: { at: NaN } })],
  ["a start before 1970", "TIME_OUT_OF_RANGE", create({ startAt: { at: -1 } })],
  ["a start in -1 ms", "DURATION_INVALID", create({ startAt: { in: -1 } })],
  ["a deadline of NaN", "DURATION_INVALID", create({ deadline: NaN })],
  ["a deadline in words", "DURATION_INVALID", create({ deadline: "soon" })],
  ["a deadline after all time", "TIME_OUT_OF_RANGE", create({ deadline: 2 ** 53 - 1 })],
  ["an empty concurrency key", "NAME_INVALID", create({ concurrencyKey: "" })],
  ["a concurrency key with NUL", "NAME_INVALID", create({ concurrencyKey: "\0" })],
  ["half a character", "NAME_INVALID", create({ tags: ["\ud800"] })],
  ["an empty tag", "NAME_INVALID", create({ tags: [""] })],
  ["33 tags", "OPTION_INVALID", create({ tags: Array.from({ length: 33 }, (_, n) => `t${n}`) })],
  ["an empty code version", "NAME_INVALID", create({ codeVersion: "" })],
  ["metadata with a long value", "OPTION_INVALID", create({ metadata: { a: "x".repeat(513) } })],
  ["metadata with a long name", "OPTION_INVALID", create({ metadata: { ["x".repeat(65)]: "" } })],
  ["metadata with an empty name", "OPTION_INVALID", create({ metadata: { "": "" } })],
  ["metadata with NUL in a value", "OPTION_INVALID", create({ metadata: { a: "\0" } })],
  ["metadata with NUL in a name", "OPTION_INVALID", create({ metadata: { "\0": "" } })],
  ["metadata with half a character", "OPTION_INVALID", create({ metadata: { a: "\udc00" } })],
  ["metadata with a number", "OPTION_INVALID", create({ metadata: { a: 1 as never } })],
  ["metadata that is a list", "OPTION_INVALID", create({ metadata: [] as never })],
  ["metadata that is a text", "OPTION_INVALID", create({ metadata: "a" as never })],
  ["metadata that is a Map", "OPTION_INVALID", create({ metadata: new Map() as never })],
  [
    "17 metadata entries",
    "OPTION_INVALID",
    create({
      metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`m${n}`, ""])),
    }),
  ],
  ["an unknown role", "OPTION_INVALID", create({ role: "robot" })],
  ["a malformed starter", "ID_MALFORMED", create({ scheduledBy: "a b" })],
  ["a function as input", "NOT_SERIALIZABLE", create({ input: () => 1 })],
  ["NaN as input", "NOT_SERIALIZABLE", create({ input: { deep: [NaN] } })],
  ["an event of no kind", "EVENTS_INVALID", append({ kind: "invented" })],
  [
    "an event due at NaN",
    "EVENTS_INVALID",
    append({ kind: "attemptTimedOut", dueAt: NaN, counts: "death" }),
  ],
  ["a value that cannot be kept", "NOT_SERIALIZABLE", append(step("s", Symbol("s")))],
  [
    "a request for another's child",
    "EVENTS_INVALID",
    append(childRequested("n:x", "b.n:x_1", "f")),
  ],
  ["a child of another set", "EVENTS_INVALID", append(childRequested("n:y", "a.n:x_1", "f"))],
  [
    "a child with a bad name",
    "NAME_INVALID",
    (store) => store.append("a", 1, [step("s")], { children: [{ function: "?" }] }),
  ],
  ["a lease of -1", "DURATION_INVALID", locking({ lease: -1 })],
  ["a lease of NaN", "DURATION_INVALID", locking({ lease: NaN })],
  ["a bad executor", "ID_MALFORMED", locking({ holder: { ...ann, executor: "me" } })],
  ["a bad run", "ID_MALFORMED", locking({ holder: { ...ann, run: ann.executor } })],
  [
    "a backoff below 0",
    "OPTION_INVALID",
    locking({ retry: { maxRetries: 1, backoffMs: -1, backoffMaxMs: 1 } }),
  ],
  [
    "NaN retries",
    "OPTION_INVALID",
    locking({ retry: { maxRetries: NaN, backoffMs: 1, backoffMaxMs: 1 } }),
  ],
  ["an empty code version of a lock", "NAME_INVALID", locking({ codeVersion: "" })],
  ["a limit of 0", "OPTION_INVALID", pending({ limit: 0 })],
  ["a limit of 101", "OPTION_INVALID", pending({ limit: 101 })],
  ["a limit of NaN", "OPTION_INVALID", pending({ limit: NaN })],
  ["a limit of 1.5", "OPTION_INVALID", pending({ limit: 1.5 })],
  ["a served function without a name", "NAME_INVALID", pending({ functions: [""] })],
  [
    "a negative concurrency",
    "OPTION_INVALID",
    pending({ functions: [{ name: "f", concurrencyMax: -1 }] }),
  ],
  ["NaN per key", "OPTION_INVALID", pending({ functions: [{ name: "f", perKeyMax: NaN }] })],
  [
    "a fraction of a retry",
    "OPTION_INVALID",
    pending({
      functions: [
        {
          name: "f",
          retry: { maxRetries: 0.5, backoffMs: 1, backoffMaxMs: 1 },
        },
      ],
    }),
  ],
  [
    "giving back for -1 ms",
    "DURATION_INVALID",
    (store) => store.unlock("a", 1, { holder: ann, reason: "r", after: -1 }),
  ],
  ["a signal without a name", "NAME_INVALID", (store) => store.signal("a", "", 1)],
  ["a signal with a strange name", "NAME_INVALID", (store) => store.signal("a", "go!", 1)],
  [
    "a signal with an empty key",
    "NAME_INVALID",
    (store) => store.signal("a", "go", 1, { key: "" }),
  ],
  ["a signal that cannot be kept", "NOT_SERIALIZABLE", (store) => store.signal("a", "go", NaN)],
  ["receiving without a name", "NAME_INVALID", (store) => store.receive("a", "", 1)],
  [
    "a fence that is none",
    "ID_MALFORMED",
    (store) =>
      store.append("a", 1, [step("s")], {
        fence: { ...ann, run: "me" as RunId },
      }),
  ],
  [
    "a result of no kind",
    "OPTION_INVALID",
    (store) => store.finish("a", 1, { kind: "won" } as never),
  ],
  ["waiting for no function", "OPTION_INVALID", (store) => store.waitForPending([])],
  ["an empty reason", "NAME_INVALID", (store) => store.cancel("a", { reason: "" })],
  ["a long reason", "NAME_INVALID", (store) => store.cancel("a", { reason: "x".repeat(4_097) })],
  ["progress that cannot be kept", "NOT_SERIALIZABLE", (store) => store.setProgress("a", NaN)],
];

/** Every way for a value to get in. */
const withValue: Readonly<Record<string, (store: Executions, value: unknown) => Promise<unknown>>> =
  {
    create: (store, input) => store.create({ function: "f", input }),
    createLocked: (store, input) => store.createLocked({ function: "f", input }, byAnn),
    append: (store, value) => store.append("a", 1, [step("s", value)]),
    "append with a child": (store, input) =>
      store.append("a", 1, [step("s")], {
        children: [{ function: "f", input }],
      }),
    finish: (store, value) => store.finish("a", 1, { kind: "completed", value }),
    resolve: (store, value) => store.resolve("a", { kind: "completed", value }),
    signal: (store, value) => store.signal("a", "go", value),
    setProgress: (store, value) => store.setProgress("a", value),
  };

export function executionBorderSuite(backend: Backend): void {
  describe("what may be given to the execution log", () => {
    test(
      "malformed ids are refused by every method, and nothing is written",
      onExecutions(backend, async (fixture) => {
        await fixture.store.create({ id: "a", function: "f" });
        for (const [method, call] of Object.entries(byId))
          for (const id of malformed)
            expect([method, id, await refusal(fixture, () => call(fixture.store, id))]).toEqual([
              method,
              id,
              "ID_MALFORMED",
            ]);
      }),
    );

    test(
      "versions are whole numbers from 0 on",
      onExecutions(backend, async (fixture) => {
        await fixture.store.create({ id: "a", function: "f" });
        for (const [method, call] of Object.entries(byVersion))
          for (const version of [-1, 0.5, NaN, Infinity, 2 ** 53])
            expect([
              method,
              version,
              await refusal(fixture, () => call(fixture.store, version)),
            ]).toEqual([method, version, "OPTION_INVALID"]);
      }),
    );

    test(
      "everything else is checked, each with its code",
      onExecutions(backend, async (fixture) => {
        await fixture.store.create({ id: "a", function: "f" });
        for (const [what, code, call] of others)
          expect([what, await refusal(fixture, () => call(fixture.store))]).toEqual([what, code]);
      }),
    );

    test(
      "a value that is too large is refused with its size, wherever it comes in",
      onExecutions(backend, async (fixture) => {
        const { database, store } = fixture;
        const small = executions(database, {
          clock: manualClock(T0),
          valueLimits: { charactersMax: 100 },
        });
        await store.create({ id: "a", function: "f" });
        for (const [method, call] of Object.entries(withValue)) {
          expect([method, await refusal(fixture, () => call(small, "x".repeat(200)))]).toEqual([
            method,
            "VALUE_TOO_LARGE",
          ]);
          const { details } = await rejection(call(small, "x".repeat(200)));
          expect(details).toMatchObject({ limit: 100 });
          expect(details?.["size"]).toBeGreaterThan(100);
        }
        // Unless told otherwise 2 MiB of text are fine, and more are not.
        await store.setProgress("a", "x".repeat(2 * 1024 * 1024 - 2));
        const { details } = await rejection(
          store.setProgress("a", "x".repeat(2 * 1024 * 1024 - 1)),
        );
        expect(details).toMatchObject({ limit: 2_097_152, size: 2_097_153 });
      }),
    );

    test(
      "a call that is given up before it began does nothing",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const wait = { signal: AbortSignal.abort() };
        for (const call of [
          () => store.create({ function: "f" }, wait),
          () => store.createLocked({ function: "f" }, { ...byAnn, ...wait }),
          () => store.append("a", 1, [step("s")], wait),
          () => store.finish("a", 1, { kind: "timedOut" }, wait),
          () => store.fork("a", 0, wait),
          () => store.lock("a", 1, { ...byAnn, ...wait }),
          () =>
            store.lockPending({
              ...byAnn,
              ...wait,
              functions: ["f"],
              limit: 1,
            }),
          () => store.pause("a", wait),
          () => store.cancel("a", { reason: "why", ...wait }),
          () => store.signal("a", "go", 1, wait),
          () => store.setProgress("a", 1, wait),
        ])
          expect(await refusal(fixture, call)).toBe("ABORTED");
      }),
    );
  });
}
