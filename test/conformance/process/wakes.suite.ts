import { describe, expect, test } from "vitest";
import { sql, type Clock, type Database } from "../../../src/kernel.ts";
import { leases, type Queue } from "../../../src/sessions.ts";
import type { ProcessEventType } from "../../../src/processes.ts";
import type { Backend } from "../backend.ts";
import { altered, onProcesses } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";

type On = (body: (fixture: ProcessFixture) => Promise<void>) => () => Promise<void>;

export function processWakesSuite(backend: Backend): void {
  const on: On = (body) => onProcesses(backend, body);
  describe("waking a session", () => {
    matrixTests(on);
    dedupeTests(on);
    targetTests(on);
  });
}

const whole = { kind: "payload" } as const;
const at = (pointer: string) => ({ kind: "pointer", pointer }) as const;

function matrixTests(on: On): void {
  test.each<[string, ProcessEventType["wake"], unknown, string | null]>([
    ["a condition that is false", { when: at("/on"), input: whole }, { on: false }, null],
    ["a condition that is null", { when: at("/on"), input: whole }, { on: null }, null],
    ["a condition that is empty", { when: at("/on"), input: whole }, { on: [] }, null],
    ["a condition that is 0, which is true", { when: at("/on"), input: at("/on") }, { on: 0 }, "0"],
    [
      "a presence that is absent",
      { when: { kind: "present", pointer: "/on" }, input: whole },
      {},
      null,
    ],
    [
      "a presence",
      { when: { kind: "present", pointer: "/on" }, input: at("/t") },
      { on: null, t: "there" },
      "there",
    ],
    ["the payload as text", { input: whole }, "hello", "hello"],
    ["the payload as JSON", { input: whole }, { a: [1, null] }, '{"a":[1,null]}'],
    ["a constant", { input: { kind: "constant", value: "done" } }, 7, "done"],
    [
      "a template",
      {
        input: {
          kind: "template",
          text: "{n} of {all}: {what}",
          values: {
            n: at("/n"),
            all: { kind: "constant", value: 9 },
            what: at("/list/1"),
          },
        },
      },
      { n: 2, list: ["a", { b: 1 }] },
      '2 of 9: {"b":1}',
    ],
  ])("[A61] %s", (_, wake, payload, input) =>
    on(async ({ store, queue }) => {
      const eventTypes = [{ name: "e", ...(wake && { wake }) }];
      await store.register({ id: "p", kind: "k", wakeTarget: "s", eventTypes });
      const appended = await store.append("p", { type: "e", payload });
      expect(appended.wake?.input ?? null).toBe(input);
      const { items: events } = await store.events("p", { wakes: true });
      expect(events).toHaveLength(input === null ? 0 : 1);
      expect((await queue.list("s")).items).toHaveLength(input === null ? 0 : 1);
    })(),
  );
}

function dedupeTests(on: On): void {
  const eventTypes: readonly ProcessEventType[] = [
    { name: "e", wake: { input: at("/t"), dedupe: at("/k") } },
    {
      name: "c",
      wake: { input: at("/t"), dedupe: { kind: "constant", value: "all" } },
    },
  ];

  test(
    "[A61] a dedupe key joins a wake that is still queued, of any process, and the first one's text stays",
    on(async ({ store, queue }) => {
      for (const id of ["p", "q"])
        await store.register({ id, kind: "k", wakeTarget: "s", eventTypes });
      const batchOf = async (id: string, type: string, payload: unknown): Promise<unknown> =>
        (await store.append(id, { type, payload })).wake?.delivery;
      const first = await batchOf("p", "e", { t: "one", k: "a" });
      expect(first).toMatchObject({ kind: "queued" });
      const second = await batchOf("q", "e", { t: "two", k: "a" });
      expect(second).toEqual({ ...(first as object), kind: "coalesced" });
      expect(await batchOf("p", "e", { t: "three", k: "b" })).toMatchObject({
        kind: "queued",
      });
      expect(await batchOf("p", "c", { t: "four" })).toMatchObject({
        kind: "queued",
      });
      expect(await batchOf("p", "c", { t: "five" })).toMatchObject({
        kind: "coalesced",
      });
      const texts = (await queue.list("s")).items.map(({ items }) => items[0]?.payload);
      expect(texts).toMatchObject([{ input: "one" }, { input: "three" }, { input: "four" }]);
      // Each event says of itself that it woke, whether alone or not.
      expect((await store.events("p", { wakes: true })).items).toHaveLength(4);
    }),
  );

  test(
    "[A61] what somebody works on or has dealt with is not joined",
    on(async ({ store, queue, database, clock }) => {
      await store.register({
        id: "p",
        kind: "k",
        wakeTarget: "s",
        eventTypes,
      });
      const wake = async (t: string): Promise<string | undefined> =>
        (await store.append("p", { type: "c", payload: { t } })).wake?.delivery.kind;
      expect(await wake("one")).toBe("queued");
      const held = await leases(database, { clock }).acquire("s", {
        owner: "ada",
        incarnation: "1",
      });
      if (held.kind === "busy") throw new Error("Nobody else asks.");
      const claim = await queue.claimTurn(held.lease);
      expect(await wake("two")).toBe("queued");
      expect(await wake("three")).toBe("coalesced");
      await queue.completeWithoutCommit(held.lease, claim ? [claim.ref] : []);
      expect(await wake("four")).toBe("coalesced");
      const next = await queue.claimTurn(held.lease);
      await queue.completeWithoutCommit(held.lease, next ? [next.ref] : []);
      expect(await wake("five")).toBe("queued");
      // A replay of what was coalesced and dealt with wakes nobody again.
      expect((await queue.list("s")).items).toHaveLength(1);
    }),
  );

  test(
    "[A61] a dedupe key joins only wakes of the same frame",
    on(async ({ store, queue }) => {
      const woken = async (id: string, frame: string | null): Promise<string | undefined> => {
        const wakeTarget = { session: "s", frame };
        await store.register({ id, kind: "k", wakeTarget, eventTypes });
        return (await store.append(id, { type: "c", payload: { t: id } })).wake?.delivery.kind;
      };
      expect(await woken("p", "planner")).toBe("queued");
      expect(await woken("q", "writer")).toBe("queued");
      expect(await woken("r", null)).toBe("queued");
      expect(await woken("t", "writer")).toBe("coalesced");
      expect(await woken("u", null)).toBe("coalesced");
      const wakes = (await queue.list("s")).items.map(({ items }) => items[0]?.payload);
      expect(wakes).toMatchObject([
        { input: "p", frame: "planner" },
        { input: "q", frame: "writer" },
        { input: "r", frame: null },
      ]);
    }),
  );

  test(
    "wakes of one merge key are taken together, with work of that key and for one frame",
    on(async ({ store, queue, database, clock }) => {
      const merging: readonly ProcessEventType[] = [
        { name: "c", wake: { input: at("/t"), merge: { kind: "constant", value: "news" } } },
        { name: "p", wake: { input: at("/t"), merge: at("/k") } },
        { name: "alone", wake: { input: at("/t") } },
      ];
      const wake = async (id: string, type: string, t: string, frame: string | null, k = "") => {
        const wakeTarget = { session: "s", frame };
        await store.register({ id, kind: "k", wakeTarget, eventTypes: merging });
        return store.append(id, { type, payload: { t, k } });
      };
      await wake("p", "c", "1", null);
      await queue.enqueue("s", {
        slot: "join",
        mergeKey: "news",
        items: [{ kind: "input", payload: { input: "2" } }],
      });
      await wake("p", "c", "3", null);
      await wake("f", "c", "4", "writer");
      await wake("f", "c", "5", "writer");
      await wake("p", "p", "6", null, "x");
      await wake("p", "p", "7", null, "x");
      await wake("p", "p", "8", null, "y");
      await wake("p", "alone", "9", null);
      await wake("p", "alone", "10", null);
      const held = await leases(database, { clock }).acquire("s", {
        owner: "ada",
        incarnation: "1",
      });
      if (held.kind === "busy") throw new Error("Nobody else asks.");
      const taken: unknown[] = [];
      for (let claim = await queue.claimTurn(held.lease, { limit: 10 }); claim !== undefined;) {
        const payloads = claim.batches.flatMap(({ items }) => items.map(({ payload }) => payload));
        taken.push(payloads.map((payload) => (payload as { input: string }).input));
        await queue.completeWithoutCommit(held.lease, [claim.ref]);
        claim = await queue.claimTurn(held.lease, { limit: 10 });
      }
      expect(taken).toEqual([["1", "2", "3"], ["4", "5"], ["6", "7"], ["8"], ["9"], ["10"]]);
    }),
  );

  test(
    "the end of an execution wakes with the merge key that was declared, and a key that no queue takes is refused",
    on(async ({ store, queue, executions }) => {
      const ended = (value: unknown): readonly ProcessEventType[] => [
        {
          name: "process.completed",
          wake: {
            input: { kind: "constant", value: "done" },
            merge: { kind: "constant", value },
          },
        },
      ];
      const spawn = (id: string, value: unknown) =>
        store.spawn({
          id,
          kind: "k",
          wakeTarget: "s",
          eventTypes: ended(value),
          execution: { function: "f", role: "external" },
        });
      await spawn("a", "ends");
      await executions.resolve("a", { kind: "completed", value: 1 });
      expect((await queue.list("s")).items).toMatchObject([{ slot: "join", mergeKey: "ends" }]);
      for (const key of ["", "x".repeat(129), 5, "a\u0000"])
        await expect(spawn("b", key)).rejects.toMatchObject({
          code: "PROCESS_INVALID",
          details: { path: "$.eventTypes[0].wake.merge" },
        });
    }),
  );

  test(
    "[A61] what its holder may still complete is not joined, also by somebody whose clock says that the lease ran out",
    on(async ({ store, queue, database, clock }) => {
      await store.register({ id: "p", kind: "k", wakeTarget: "s", eventTypes });
      const wake = async (t: string): Promise<string | undefined> =>
        (await store.append("p", { type: "c", payload: { t } })).wake?.delivery.kind;
      expect(await wake("one")).toBe("queued");
      const begun = clock.now();
      const held = await leases(database, { clock }).acquire(
        "s",
        { owner: "ada", incarnation: "1" },
        { lease: 1_000 },
      );
      if (held.kind === "busy") throw new Error("Nobody else asks.");
      const claim = await queue.claimTurn(held.lease);
      clock.set(begun + 1_001);
      expect(await wake("two")).toBe("queued");
      // The holder read its clock before the lease ran out, and comes second.
      clock.set(begun + 999);
      await queue.completeWithoutCommit(held.lease, claim ? [claim.ref] : []);
      const texts = (await queue.list("s")).items.map(({ items }) => items[0]?.payload);
      expect(texts).toMatchObject([{ input: "two" }]);
    }),
  );

  test(
    "[AX6] a replay after its wake was consumed does not wake again, also when it had joined another",
    on(async ({ store, queue, database, clock }) => {
      await store.register({
        id: "p",
        kind: "k",
        wakeTarget: "s",
        eventTypes,
      });
      const drafts = ["one", "two"].map((t) => ({
        type: "c",
        payload: { t },
        replayKey: t,
      }));
      for (const draft of drafts) await store.append("p", draft);
      await consumeAll(queue, database, clock);
      for (const draft of drafts)
        expect(await store.append("p", draft)).toMatchObject({
          isReplay: true,
        });
      expect((await queue.list("s")).items).toEqual([]);
    }),
  );
}

/** Deals with whatever a session has in its queue. */
async function consumeAll(queue: Queue, database: Database, clock: Clock): Promise<void> {
  const owner = { owner: "ada", incarnation: "1" };
  const held = await leases(database, { clock }).acquire("s", owner);
  if (held.kind === "busy") throw new Error("Nobody else asks.");
  const claim = await queue.claimTurn(held.lease);
  await queue.completeWithoutCommit(held.lease, claim ? [claim.ref] : []);
}

function targetTests(on: On): void {
  const eventTypes: readonly ProcessEventType[] = [
    { name: "e", wake: { input: whole } },
    { name: "process.completed", wake: { input: at("/output/value") } },
  ];

  test(
    "[AX6] what somebody has enqueued by hand from the same source does not stand for a wake",
    on(async ({ store, queue, database, clock }) => {
      const byHand = (process: string, sequence: number) =>
        queue.enqueue("s", {
          source: { process, sequence },
          items: [{ kind: "note", payload: "by hand" }],
        });
      await byHand("p", 1_000);
      await consumeAll(queue, database, clock);
      await byHand("q", 1);
      for (const id of ["p", "q"]) {
        await store.register({ id, kind: "k", wakeTarget: "s", eventTypes });
        const { wake } = await store.append(id, { type: "e", payload: id });
        const last = (await queue.list("s")).items.at(-1);
        expect(last).toMatchObject({
          source: { process: id, sequence: 1 },
          items: [{ payload: { input: id } }],
        });
        const batch = last?.id;
        expect(wake?.delivery).toMatchObject({ kind: "queued", batch });
      }
      expect(await byHand("q", 1)).toMatchObject({ kind: "duplicate" });
      expect((await queue.list("s")).items).toMatchObject([
        { source: null, items: [{ payload: "by hand" }] },
        { source: { process: "p" } },
        { source: { process: "q" } },
      ]);
    }),
  );

  test(
    "[A63] a wake without a target is stored and delivered to nobody",
    on(async ({ store, queue }) => {
      await store.register({ id: "p", kind: "k", eventTypes });
      const { wake } = await store.append("p", { type: "e", payload: "x" });
      expect(wake).toEqual({
        dedupeKey: "p:1",
        input: "x",
        delivery: { kind: "noTarget" },
      });
      expect((await store.events("p", { wakes: true })).items).toHaveLength(1);
      expect((await queue.list("s")).items).toEqual([]);
    }),
  );

  test(
    "a request may name another session to wake than the record does",
    on(async ({ store, queue, sessions }) => {
      await sessions.create("other");
      await store.register({ id: "p", kind: "k", wakeTarget: "s", eventTypes });
      const { wake } = await store.append("p", {
        type: "e",
        payload: "x",
        wakeTarget: { session: "other", frame: "planner" },
      });
      expect(wake?.delivery).toMatchObject({
        session: "other",
        frame: "planner",
      });
      expect((await queue.list("s")).items).toEqual([]);
      const [batch] = (await queue.list("other")).items;
      expect(batch?.items[0]?.payload).toMatchObject({ frame: "planner" });
    }),
  );

  test(
    "a deleted session is not woken, and neither is the next one of its id; the event happens",
    on(async ({ store, queue, sessions, database }) => {
      await store.register({ id: "p", kind: "k", wakeTarget: "s", eventTypes });
      await sessions.delete("s");
      await sessions.create("s");
      // As if the process had been registered a moment before the deletion.
      await altered(
        database,
        sql`UPDATE holdfast_process SET wake_session = 's', wake_generation = 1`,
      );
      const { wake, event } = await store.append("p", {
        type: "e",
        payload: "x",
      });
      expect(wake?.delivery).toEqual({ kind: "targetGone" });
      expect(event.sequence).toBe(2);
      expect((await queue.list("s")).items).toEqual([]);
    }),
  );

  test(
    "the end of a process may wake, when that is declared",
    on(async ({ store, queue }) => {
      await store.register({ id: "p", kind: "k", wakeTarget: "s", eventTypes });
      const { wake } = await store.complete("p", {
        kind: "completed",
        value: "all done",
      });
      expect(wake).toMatchObject({ input: "all done" });
      expect((await queue.list("s")).items).toHaveLength(1);
    }),
  );
}
