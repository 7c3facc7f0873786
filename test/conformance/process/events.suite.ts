import { describe, expect, test } from "vitest";
import { sql } from "../../../src/kernel.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { build } from "./build.ts";
import { altered, onProcesses, stored } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";

type On = (body: (fixture: ProcessFixture) => Promise<void>) => () => Promise<void>;

export function processEventsSuite(backend: Backend): void {
  const on: On = (body) => onProcesses(backend, body);
  describe("appending an event", () => {
    refusalTests(on);
    appendTests(on);
    replayTests(on);
  });
  describe("reading events", () => {
    readTests(on);
  });
}

function refusalTests(on: On): void {
  test.each<[string, string, object, object]>([
    [
      "[A58] a missing property",
      "EVENT_PAYLOAD_INVALID",
      { type: "progress", payload: {} },
      { path: "$.percent", rule: "it is required" },
    ],
    [
      "[A58] a value beyond its maximum",
      "EVENT_PAYLOAD_INVALID",
      { type: "progress", payload: { percent: 101 } },
      { path: "$.percent", rule: "maximum is 100" },
    ],
    [
      "[A58] a value of another type",
      "EVENT_PAYLOAD_INVALID",
      { type: "progress", payload: { percent: "1" } },
      { path: "$.percent", rule: "type is not integer" },
    ],
    [
      "[A58] a text that is too long",
      "EVENT_PAYLOAD_INVALID",
      { type: "progress", payload: { percent: 1, step: "secret" } },
      { path: "$.step", rule: "maxLength is 5" },
    ],
    [
      "[A58] an undeclared property",
      "EVENT_PAYLOAD_INVALID",
      { type: "progress", payload: { percent: 1, more: 1 } },
      { path: "$.more", rule: "no property of that name is declared" },
    ],
    ["an undeclared type", "EVENT_TYPE_UNDECLARED", { type: "other" }, { type: "other" }],
    [
      "a type of the registry",
      "EVENT_TYPE_RESERVED",
      { type: "process.waiting" },
      { type: "process.waiting" },
    ],
    ["the registration again", "EVENT_TYPE_RESERVED", { type: "process.registered" }, {}],
    [
      "a pointer to nothing",
      "EVENT_SELECTOR_UNMATCHED",
      { type: "found", payload: {} },
      { pointer: "/text" },
    ],
    [
      "an end without a replay key",
      "REPLAY_KEY_REQUIRED",
      { type: "built", payload: 1 },
      { type: "built" },
    ],
    [
      "[A64] a cancel request without a replay key",
      "REPLAY_KEY_REQUIRED",
      { type: "process.cancel_requested" },
      {},
    ],
    ["an empty replay key", "NAME_INVALID", { type: "built", replayKey: "" }, {}],
    [
      "a payload that cannot be stored",
      "NOT_SERIALIZABLE",
      { type: "signal.go", payload: { f: () => 1 } },
      {},
    ],
    [
      "a fence that is nothing like one",
      "PROCESS_LEASE_LOST",
      { type: "signal.go", fence: {} },
      { reason: "missing" },
    ],
  ])("%s is refused and changes nothing", (_, code, event, details) =>
    on(async ({ store, database }) => {
      await store.register(build);
      const before = await stored(database);
      const error = await rejection(store.append("p", event as never));
      expect(error).toMatchObject({ code, details });
      expect(error.message).not.toContain("secret");
      expect(await stored(database)).toEqual(before);
    })(),
  );

  test(
    "an unknown process is refused in every way to address one",
    on(async ({ store, database }) => {
      const before = await stored(database);
      for (const call of [
        () => store.append("none", { type: "a" }),
        () => store.complete("none", { kind: "completed", value: 1 }),
        () => store.cancel("none"),
        () => store.signal("none", "go", 1, { key: "k" }),
        () => store.setWait("none", { signal: "go", ordinal: 1 }),
        () => store.clearWait("none"),
        () => store.setExternalRef("none", { backend: "b", id: "1" }),
        () => store.grant("none", "s"),
        () => store.revoke("none", "s"),
        () => store.transfer("s", "s", ["none"]),
        () => store.hasHandle("none", "s"),
        () => store.grants("none"),
        () => store.output("none"),
        () => store.events("none"),
        () => store.recent("none", 1),
        () => store.count("none", "a"),
        () => store.waitForEvent("none"),
        () => store.waitForEnd("none"),
        () => store.waitForSignal("none", "go", 1),
      ])
        expect(await rejection(call())).toMatchObject({
          code: "PROCESS_NOT_FOUND",
          details: { id: "none" },
        });
      expect(await store.get("none")).toBeUndefined();
      expect(await stored(database)).toEqual(before);
    }),
  );
}

function appendTests(on: On): void {
  test(
    "prepared, it is one with what else is written, and may be run again",
    on(async ({ store, queue, database }) => {
      await store.register(build);
      const payload = { percent: 50 };
      const append = store.append.prepare("p", {
        type: "progress",
        payload,
        replayKey: "half",
      });
      payload.percent = 60;
      const enqueue = queue.enqueue.prepare("s", {
        items: [{ kind: "user_message", payload: "half" }],
      });
      const before = await stored(database);
      const error = await rejection(
        database.write("report", function* () {
          yield* append();
          yield* enqueue();
          throw new Error("changed my mind");
        }),
      );
      expect(error.message).toBe("changed my mind");
      expect(await stored(database)).toEqual(before);
      const report = function* () {
        const { event, isReplay } = yield* append();
        return { sequence: event.sequence, payload: event.payload, isReplay };
      };
      const told = { sequence: 1, payload: { percent: 50 } };
      expect(await database.write("report", report)).toEqual({
        ...told,
        isReplay: false,
      });
      expect(await database.write("report", report)).toEqual({
        ...told,
        isReplay: true,
      });
      expect(() => store.append.prepare("p", { type: "progress" }, { timeout: 1 })).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID" }),
      );
    }),
  );

  test(
    "[A58] the first event has number 1, and a wake carries the text it selected",
    on(async ({ store, queue, clock }) => {
      await store.register(build);
      clock.advance(3);
      const first = await store.append("p", {
        type: "progress",
        payload: { percent: 50 },
      });
      expect(first).toEqual({
        event: {
          process: "p",
          sequence: 1,
          at: 1_000_003,
          type: "progress",
          payload: { percent: 50 },
          replayKey: null,
          ordinal: null,
          end: null,
          wake: null,
          executionVersion: null,
        },
        wake: null,
        isReplay: false,
        status: "running",
      });
      const second = await store.append("p", {
        type: "found",
        payload: { text: "two bugs" },
      });
      expect(second.wake).toMatchObject({ input: "two bugs" });
      const { items: batches } = await queue.list("s");
      expect(batches).toMatchObject([
        {
          source: { process: "p", sequence: 2 },
          class: "turn",
          delivery: "earliestSafeBoundary",
          slot: "exclusive",
          items: [
            {
              kind: "process.wake",
              payload: { process: "p", type: "found", input: "two bugs" },
            },
          ],
        },
      ]);
      expect(await store.get("p")).toMatchObject({
        sequence: 2,
        updatedAt: 1_000_003,
      });
    }),
  );

  test(
    "[A59] a wake says where it comes from, and its replay is the same wake",
    on(async ({ store, queue, database }) => {
      await store.register(build);
      const draft = {
        type: "found",
        payload: { text: "x" },
        replayKey: "find-1",
      };
      const first = await store.append("p", draft);
      expect(first.wake).toMatchObject({
        dedupeKey: "p:1",
        input: "x",
        delivery: {
          kind: "queued",
          session: "s",
          generation: 1,
          frame: null,
        },
      });
      const before = await stored(database);
      const again = await store.append("p", draft);
      expect(again).toEqual({ ...first, isReplay: true });
      expect(await stored(database)).toEqual(before);
      const [batch] = (await queue.list("s")).items;
      expect(first.wake?.delivery).toMatchObject({ batch: batch?.id });
      expect(batch?.items[0]?.payload).toEqual({
        process: "p",
        type: "found",
        input: "x",
        replayKey: "find-1",
        causedBy: "turn-1",
        frame: null,
      });
    }),
  );

  test(
    "a clock that is set back does not make a process younger",
    on(async ({ store, clock }) => {
      await store.register(build);
      clock.advance(100);
      await store.append("p", { type: "signal.go" });
      clock.set(5);
      const { event } = await store.append("p", { type: "signal.go" });
      expect(event).toMatchObject({ sequence: 2, at: 5, ordinal: 2 });
      expect(await store.get("p")).toMatchObject({ updatedAt: 1_000_100 });
    }),
  );

  test(
    "events appended at once get one number each",
    on(async ({ store }) => {
      await store.register(build);
      const all = await Promise.all(
        Array.from({ length: 10 }, () => store.append("p", { type: "signal.go" })),
      );
      const numbers = all.map(({ event }) => event.sequence);
      expect(numbers.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      expect((await store.get("p"))?.sequence).toBe(10);
    }),
  );
}

function replayTests(on: On): void {
  test(
    "[A62] the same key and payload is the same event, another payload or type a conflict",
    on(async ({ store, database }) => {
      await store.register(build);
      const draft = { type: "found", payload: { text: "a" }, replayKey: "k" };
      const first = await store.append("p", draft);
      await store.append("p", { type: "progress", payload: { percent: 1 } });
      const before = await stored(database);
      expect(await store.append("p", draft)).toMatchObject({
        isReplay: true,
        event: { sequence: 1 },
        wake: { delivery: first.wake?.delivery },
      });
      for (const other of [
        { ...draft, payload: { text: "b" } },
        { ...draft, type: "progress" },
        { ...draft, type: "undeclared" },
      ])
        expect(await rejection(store.append("p", other))).toMatchObject({
          code: "REPLAY_KEY_CONFLICT",
          details: { id: "p", replayKey: "k" },
        });
      expect(await stored(database)).toEqual(before);
    }),
  );

  test(
    "an append whose answer was lost may be repeated",
    on(async ({ store, faults, queue }) => {
      await store.register(build);
      const draft = { type: "found", payload: { text: "a" }, replayKey: "k" };
      faults.losesAnswer = true;
      expect(await rejection(store.append("p", draft))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      expect(await store.append("p", draft)).toMatchObject({ isReplay: true });
      expect((await queue.list("s")).items).toHaveLength(1);
    }),
  );
}

function readTests(on: On): void {
  test(
    "[A60] a cursor is not part of what is behind it, and wake reads filter",
    on(async ({ store }) => {
      await store.register(build);
      for (let at = 1; at <= 3; at += 1) {
        await store.append("p", { type: "progress", payload: { percent: at } });
        await store.append("p", { type: "found", payload: { text: `${at}` } });
      }
      const numbers = async (
        options: Parameters<typeof store.events>[1],
      ): Promise<readonly number[]> =>
        (await store.events("p", options)).items.map(({ sequence }) => sequence);
      expect(await numbers({})).toEqual([1, 2, 3, 4, 5, 6]);
      expect(await numbers({ from: 5 })).toEqual([5, 6]);
      expect(await numbers({ wakes: true })).toEqual([2, 4, 6]);
      expect(await numbers({ wakes: true, from: 3 })).toEqual([4, 6]);
      expect(await numbers({ type: "progress" })).toEqual([1, 3, 5]);
      expect(await numbers({ from: 0, limit: 1 })).toEqual([0]);
      const page = await store.events("p", { limit: 4 });
      const next = page.next ?? "";
      expect(await numbers({ after: next })).toEqual([5, 6]);
      expect((await store.events("p", { after: next })).next).toBeUndefined();
      expect(await rejection(store.events("p", { after: next, wakes: true }))).toMatchObject({
        code: "CURSOR_INVALID",
        details: { reason: "filter" },
      });
    }),
  );

  test(
    "[A68] counts include their bound and are of one type; recent is the tail in order",
    on(async ({ store }) => {
      await store.register(build);
      for (let at = 1; at <= 4; at += 1) {
        await store.append("p", { type: "signal.go", payload: at });
        await store.append("p", { type: "progress", payload: { percent: at } });
      }
      expect(await store.count("p", "signal.go")).toBe(4);
      expect(await store.count("p", "signal.go", 5)).toBe(3);
      expect(await store.count("p", "signal.go", 4)).toBe(2);
      expect(await store.count("p", "other")).toBe(0);
      const { items: events } = await store.recent("p", 3);
      expect(events.map(({ sequence }) => sequence)).toEqual([6, 7, 8]);
      expect((await store.recent("p", 100)).items).toHaveLength(8);
    }),
  );

  test(
    "a damaged row fails a single read and is named in lists",
    on(async ({ store, database }) => {
      await store.register(build);
      await store.register({ ...build, id: "q" });
      await store.append("p", { type: "signal.go" });
      await store.append("p", { type: "signal.go" });
      await altered(
        database,
        sql`UPDATE holdfast_process_event SET body = 'x' WHERE sequence = 1`,
        sql`UPDATE holdfast_process SET status = 'odd' WHERE id = 'q'`,
      );
      expect(await store.events("p")).toMatchObject({
        items: [{ sequence: 2 }],
        damaged: [{ table: "holdfast_process_event", key: "p:1" }],
      });
      expect(await rejection(store.waitForEvent("p", { type: "signal.go" }))).toMatchObject({
        code: "CORRUPT_ROW",
      });
      expect(await rejection(store.get("q"))).toMatchObject({
        code: "CORRUPT_ROW",
        details: { table: "holdfast_process", key: "q" },
      });
      expect(await store.list({ status: "any" })).toMatchObject({
        items: [{ id: "p" }],
        damaged: [{ table: "holdfast_process", key: "q" }],
      });
      expect(await rejection(store.append("q", { type: "signal.go" }))).toMatchObject({
        code: "CORRUPT_ROW",
      });
    }),
  );
}
