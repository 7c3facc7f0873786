import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onProcesses, fixtureOf, stored } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";

type On = (body: (fixture: ProcessFixture) => Promise<void>) => () => Promise<void>;

const worker = {
  id: "p",
  kind: "tool",
  eventTypes: [{ name: "e" }, { name: "f" }, { name: "signal.go" }],
};

export function processWaitsSuite(backend: Backend): void {
  const on: On = (body) => onProcesses(backend, body);
  describe("waiting for a process", () => {
    waitTests(on);
    if (backend.survives) otherProcessTests(on);
  });
  describe("what a process waits for", () => {
    waitStateTests(on);
  });
  describe("the outside work of a process", () => {
    externalTests(on);
  });
  describe("listing processes", () => {
    listTests(on);
  });
}

function waitTests(on: On): void {
  test(
    "[A60] a wait returns what is there at once, and what comes with the append",
    on(async ({ store }) => {
      await store.register(worker);
      await store.append("p", { type: "f" });
      await store.append("p", { type: "e", payload: 1 });
      expect(await store.waitForEvent("p", { type: "e" })).toMatchObject({
        sequence: 2,
      });
      expect(await store.waitForEvent("p")).toMatchObject({ sequence: 1 });
      const coming = store.waitForEvent("p", { type: "e", after: 2 });
      await store.append("p", { type: "f" });
      await store.append("p", { type: "e", payload: 2 });
      expect(await coming).toMatchObject({ sequence: 4, payload: 2 });
    }),
  );

  test(
    "[A60] a wait ends by its deadline or signal, and leaves nothing behind",
    on(async ({ store, clock, faults }) => {
      await store.register(worker);
      const slow = rejection(store.waitForEnd("p", { timeout: 50 }));
      const aborting = new AbortController();
      const stopped = rejection(store.waitForEvent("p", {}, { signal: aborting.signal }));
      while (faults.listeners < 2) await new Promise((resolve) => setImmediate(resolve));
      aborting.abort();
      expect(await stopped).toMatchObject({ code: "ABORTED" });
      let ended = false;
      void slow.then(() => (ended = true));
      while (!ended) {
        clock.advance(50);
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(await slow).toMatchObject({ code: "DEADLINE_EXCEEDED" });
      expect(faults.listeners).toBe(0);
      expect(await rejection(store.waitForEnd("p", { timeout: 0 }))).toMatchObject({
        code: "DEADLINE_EXCEEDED",
      });
    }),
  );
}

function otherProcessTests(on: On): void {
  test(
    "[A60] a wait is ended by an append of another process",
    on(async (mine) => {
      const { place, clock, store } = mine;
      const opened = await place.open({ isWithoutPoll: true });
      const theirs = fixtureOf(place, opened, clock);
      await store.register(worker);
      const event = theirs.store.waitForEvent("p", { type: "e" });
      const end = theirs.store.waitForEnd("p");
      while (theirs.faults.listeners < 2) await new Promise((resolve) => setImmediate(resolve));
      await store.append("p", { type: "e", payload: "hello" });
      await store.complete("p", { kind: "completed", value: 7 });
      expect(await event).toMatchObject({ payload: "hello" });
      expect(await end).toEqual({ kind: "completed", value: 7 });
      await opened.close();
    }),
  );
}

function waitStateTests(on: On): void {
  test(
    "[A66] a wait state is set, listed, cleared, and ended by the end",
    on(async ({ store, clock, database }) => {
      await store.register(worker);
      clock.advance(4);
      const wait = await store.setWait("p", { signal: "go", ordinal: 1 });
      expect(wait).toEqual({
        signal: "go",
        ordinal: 1,
        key: "p:signal.go:1",
        since: 1_000_004,
      });
      const before = await stored(database);
      clock.advance(1);
      expect(await store.setWait("p", { signal: "go", ordinal: 1 })).toEqual(wait);
      expect(await stored(database)).toEqual(before);
      expect(await store.get("p")).toMatchObject({ status: "running", wait });
      expect((await store.list({ waiting: true })).items).toHaveLength(1);
      expect(await store.clearWait("p")).toBe(true);
      expect(await store.clearWait("p")).toBe(false);
      expect((await store.list({ waiting: true })).items).toEqual([]);
      await store.setWait("p", { signal: "go", ordinal: 2 });
      await store.complete("p", { kind: "completed", value: 1 });
      expect(await store.get("p")).toMatchObject({ wait: null });
      expect(await rejection(store.setWait("p", { signal: "go", ordinal: 3 }))).toMatchObject({
        code: "PROCESS_TERMINAL",
      });
      const types = (await store.events("p")).items.map(({ type }) => type);
      expect(types).toEqual([
        "process.waiting",
        "process.resumed",
        "process.waiting",
        "process.completed",
      ]);
    }),
  );

  test(
    "[A66] a wait for what nobody declared, or for number 0, is refused",
    on(async ({ store, database }) => {
      await store.register(worker);
      const before = await stored(database);
      for (const [awaited, code] of [
        [{ signal: "stop", ordinal: 1 }, "EVENT_TYPE_UNDECLARED"],
        [{ signal: "a b", ordinal: 1 }, "NAME_INVALID"],
        [{ signal: "go", ordinal: 0 }, "OPTION_INVALID"],
      ] as const)
        expect(await rejection(store.setWait("p", awaited))).toMatchObject({
          code,
        });
      expect(await stored(database)).toEqual(before);
    }),
  );

  test(
    "[A66] the n-th signal of a name meets the n-th wait, whichever comes first",
    on(async ({ store }) => {
      await store.register(worker);
      await store.signal("p", "go", "first", { key: "a" });
      expect(await store.waitForSignal("p", "go", 1)).toMatchObject({
        payload: "first",
        ordinal: 1,
      });
      const second = store.waitForSignal("p", "go", 2);
      expect(await store.signal("p", "go", "first", { key: "a" })).toMatchObject({
        isReplay: true,
      });
      await store.signal("p", "go", "second", { key: "b" });
      expect(await second).toMatchObject({ payload: "second" });
      expect(await rejection(store.signal("p", "go", "other", { key: "b" }))).toMatchObject({
        code: "REPLAY_KEY_CONFLICT",
      });
      expect(await rejection(store.signal("p", "stop", 1, { key: "c" }))).toMatchObject({
        code: "EVENT_TYPE_UNDECLARED",
      });
    }),
  );
}

function externalTests(on: On): void {
  test(
    "[A56] a reference is set once; the same again changes nothing, anything else is refused",
    on(async ({ store, clock, database }) => {
      await store.register(worker);
      const ref = { backend: "ci", id: "77", metadata: { a: 1 } };
      expect(await store.setExternalRef("p", ref)).toBe(true);
      expect(await store.get("p")).toMatchObject({
        externalRef: ref,
        externalSequence: 1,
      });
      clock.advance(9);
      const before = await stored(database);
      expect(await store.setExternalRef("p", ref)).toBe(false);
      for (const other of [
        { ...ref, id: "78" },
        { ...ref, metadata: { a: 2 } },
        { backend: "ci", id: "77" },
      ])
        expect(await rejection(store.setExternalRef("p", other))).toMatchObject({
          code: "EXTERNAL_REF_CONFLICT",
          details: { id: "p" },
        });
      expect(await stored(database)).toEqual(before);
    }),
  );
}

function listTests(on: On): void {
  test(
    "[A67] lists are by id and filter by status, waiting and definition; waiting is running",
    on(async ({ store }) => {
      for (const [id, definition] of [
        ["d", "make"],
        ["b", "make"],
        ["c", "test"],
        ["a", null],
        ["e", null],
      ] as const)
        await store.register({ ...worker, id, definition });
      await store.complete("b", { kind: "completed", value: 1 });
      await store.complete("c", { kind: "failed", code: "x", message: "m" });
      await store.complete("e", { kind: "cancelled", message: "m" });
      await store.setWait("d", { signal: "go", ordinal: 1 });
      const ids = async (options?: Parameters<typeof store.list>[0]): Promise<string> =>
        (await store.list(options)).items.map(({ id }) => id).join("");
      expect(await ids()).toBe("ad");
      expect(await ids({ status: "any" })).toBe("abcde");
      expect(await ids({ status: "completed" })).toBe("b");
      expect(await ids({ status: "failed" })).toBe("c");
      expect(await ids({ status: "cancelled" })).toBe("e");
      expect(await ids({ waiting: true })).toBe("d");
      expect(await ids({ waiting: false })).toBe("a");
      expect(await ids({ status: "any", definition: "make" })).toBe("bd");
      const page = await store.list({ status: "any", limit: 2 });
      expect(page.items.map(({ id }) => id)).toEqual(["a", "b"]);
      expect(await ids({ status: "any", after: page.next ?? "" })).toBe("cde");
      expect(await rejection(store.list({ after: page.next ?? "" }))).toMatchObject({
        code: "CURSOR_INVALID",
      });
    }),
  );

  test(
    "[A67] filters that nobody knows, and values of another type, are refused",
    on(async ({ store }) => {
      for (const option of [
        { waiting: "yes" },
        { state: "running" },
        { status: "done" },
        { definition: 7 },
      ])
        expect(await rejection(store.list(option as never))).toMatchObject({
          code: "OPTION_INVALID",
        });
    }),
  );
}
