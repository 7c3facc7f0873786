import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import type { ExecutionResult } from "../../../src/model/execution/result.ts";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { childRequested, delayRequested, joinNext, step, waiting } from "./execution-events.ts";
import { T0, ann, byAnn, kindsOf, onExecutions, refusal, standing } from "./fixture.ts";

const long = "x".repeat(5_000);
const holder = { ...ann, owner: null };
const owner = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const retry = { maxRetries: 1, backoffMs: 1, backoffMaxMs: 1 };
const locked = {
  kind: "locked",
  holder,
  leaseUntil: T0 + 9,
  retry,
  codeVersion: null,
};

const charged = { kind: "step", name: "a", target: "", inputHash: null, codeVersion: "v1" };
const mismatch = { call: 1, version: null, recorded: charged, actual: null };

function parkedBy(given: unknown): object {
  return { kind: "parked", code: "C", reason: "r", codeVersion: null, mismatch: given };
}

/** Events that only a mistake can give, with the field that is wrong. */
const faults: readonly (readonly [string, object])[] = [
  ["dueAt", { kind: "unlocked", dueAt: 1.5, reason: "r" }],
  ["dueAt", { kind: "unlocked", dueAt: -1, reason: "r" }],
  ["dueAt", { kind: "unlocked", dueAt: 8.64e15 + 1, reason: "r" }],
  ["dueAt", { kind: "attemptFailed", error: 1 }],
  ["reason", { kind: "unlocked", dueAt: T0, reason: long }],
  ["reason", { kind: "unlocked", dueAt: T0, reason: "\0" }],
  ["reason", { kind: "cancellationRequested", reason: "\ud800" }],
  ["reason", { kind: "cancellationRequested" }],
  ["code", { kind: "parked", code: "", reason: "r", codeVersion: null }],
  ["mismatch", parkedBy(null)],
  ["mismatch", parkedBy([])],
  ["mismatch", parkedBy({})],
  ["mismatch", parkedBy({ ...mismatch, call: -1 })],
  ["mismatch", parkedBy({ ...mismatch, call: "1" })],
  ["mismatch", parkedBy({ ...mismatch, version: 0.5 })],
  ["mismatch", parkedBy({ ...mismatch, also: 1 })],
  ["mismatch", parkedBy({ ...mismatch, recorded: undefined })],
  ["mismatch", parkedBy({ ...mismatch, recorded: "step" })],
  ["mismatch", parkedBy({ ...mismatch, recorded: { ...charged, kind: "leap" } })],
  ["mismatch", parkedBy({ ...mismatch, recorded: { ...charged, name: 5 } })],
  ["mismatch", parkedBy({ ...mismatch, recorded: { ...charged, name: "\0" } })],
  ["mismatch", parkedBy({ ...mismatch, actual: { ...charged, target: "\ud800" } })],
  ["mismatch", parkedBy({ ...mismatch, actual: { ...charged, target: long } })],
  ["mismatch", parkedBy({ ...mismatch, actual: { ...charged, inputHash: 1 } })],
  ["mismatch", parkedBy({ ...mismatch, actual: { ...charged, codeVersion: "" } })],
  ["mismatch", parkedBy({ ...mismatch, actual: { ...charged, value: 1 } })],
  ["mismatch", { kind: "unparked", mismatch }],
  ["codeVersion", { ...locked, codeVersion: long }],
  ["leaseUntil", { ...locked, leaseUntil: NaN }],
  ["holder", { ...locked, holder: { ...holder, executor: "me" } }],
  ["holder", { ...locked, holder: { ...holder, run: "nope\n" } }],
  ["holder", { ...locked, holder: { ...holder, also: 1 } }],
  ["retry", { ...locked, retry: { ...retry, maxRetries: -3 } }],
  ["retry", { ...locked, retry: { ...retry, backoffMs: 0.5 } }],
  ["retry", { ...locked, retry: null }],
  ["owner", { kind: "ownerDied", owner: "me", dueAt: T0, counts: "death" }],
  ["counts", { kind: "ownerDied", owner, dueAt: T0, counts: "all" }],
  ["name", { ...step(long) }],
  ["name", { ...step("") }],
  ["outcome", { ...step("s"), outcome: "won" }],
  ["call", { ...step("s"), call: -1 }],
  ["seen", { ...step("s"), seen: 0.5 }],
  ["extra", { ...step("s"), extra: long }],
  ["call", { kind: "paused", call: 1 }],
  ["joinSet", { kind: "joinSetCreated", joinSet: "x" }],
  ["child", { ...childRequested("n:x", "a.n:x_1", "f"), child: "a b" }],
  ["function", { ...childRequested("n:x", "a.n:x_1", "f"), function: "?" }],
  ["delay", { ...delayRequested("Delay_a.n:x_1", T0), delay: "a.n:x_1" }],
  ["expiresAt", { ...delayRequested("Delay_a.n:x_1", T0), expiresAt: "soon" }],
  ["startAt", { ...delayRequested("Delay_a.n:x_1", T0), startAt: long }],
  ["startAt", { ...delayRequested("Delay_a.n:x_1", T0), startAt: { at: NaN } }],
  ["runExpiresAt", { ...waiting(0, T0), runExpiresAt: Infinity }],
  ["patch", { kind: "patched", patch: long }],
  ["attempt", { kind: "stepAttemptFailed", name: "s", attempt: 0.5 }],
  ["isTransaction", { kind: "stepAttemptFailed", name: "s", isTransaction: false }],
  ["signal", { kind: "signalReceived", signal: "go!", seq: 1 }],
  ["signal", { kind: "receiveRequested", signal: "go!", expiresAt: null }],
  ["expiresAt", { kind: "receiveRequested", signal: "go" }],
  ["signal", { kind: "receiveTimedOut" }],
  ["reason", { kind: "cancellationDelivered", reason: "r" }],
  ["outcome", { kind: "transactionFinished", name: "t", value: 1 }],
];

export function executionEventsSuite(backend: Backend): void {
  describe("the events of an append", () => {
    test(
      "have the fields of their kind, each as it must be, and no others",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        for (const [field, event] of faults) {
          const call = () => store.append("a", 1, [step("fine"), event as GivenEvent]);
          expect([field, await refusal(fixture, call)]).toEqual([field, "EVENTS_INVALID"]);
          const { details } = await rejection(call());
          expect(details).toMatchObject({ id: "a", reason: "field" });
          expect(details?.["path"]).toBe(`events[1].${field}`);
        }
      }),
    );

    test.each([
      ["none", []],
      ["kind", [{ kind: "invented" }]],
      ["kind", [{ kind: "created" }]],
      ["end", [{ kind: "finished", result: { kind: "timedOut" } }, step("s")]],
      ["owner", [childRequested("n:x", "b.n:x_1", "f")]],
      ["owner", [delayRequested("Delay_b.n:x_1", T0)]],
      ["response", [waiting(1, T0)]],
      ["response", [{ kind: "signalReceived", signal: "go", seq: 1 }]],
      ["tooMany", Array.from({ length: 1_001 }, () => step("s"))],
    ] as const)("that cannot be are refused with a reason: %s", (reason, events) =>
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const call = () => store.append("a", 1, events as unknown as readonly GivenEvent[]);
        expect(await refusal(fixture, call)).toBe("EVENTS_INVALID");
        expect((await rejection(call())).details).toMatchObject({ reason });
      })(),
    );

    test(
      "are a thousand at most, with a thousand children",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const children = Array.from({ length: 1_001 }, () => ({
          function: "g",
        }));
        const error = await rejection(store.append("a", 1, [step("s")], { children }));
        expect(error).toMatchObject({
          code: "EVENTS_INVALID",
          details: { reason: "tooMany", events: 1, children: 1_001 },
        });
        const many = Array.from({ length: 1_000 }, () => step("s"));
        expect(await store.append("a", 1, many)).toEqual({
          nextVersion: 1_001,
          at: T0,
        });
      }),
    );

    test(
      "take a signal only when it is the next of its name, by its number",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.signal("a", "other", 0);
        await store.signal("a", "go", 1);
        await store.signal("a", "go", 2);
        const take = (seq: number): GivenEvent => ({
          kind: "signalReceived",
          signal: "go",
          seq,
        });
        for (const seq of [1, 3, 4])
          expect(await refusal(fixture, () => store.append("a", 1, [take(seq)]))).toBe(
            "EVENTS_INVALID",
          );
        await store.append("a", 1, [take(2)]);
        expect(await store.receive("a", "go", 2)).toMatchObject({
          seq: 3,
          value: 2,
        });
      }),
    );

    test(
      "wait for what they have not seen, and have seen no more than there is",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.signal("a", "go", 1);
        expect(await refusal(fixture, () => store.append("a", 1, [waiting(2, T0)]))).toBe(
          "EVENTS_INVALID",
        );
        await store.append("a", 1, [waiting(1, T0)]);
        expect((await standing(fixture, "a")).pending.kind).toBe("blocked");
        await store.signal("a", "go", 2);
        expect((await standing(fixture, "a")).pending.kind).toBe("pending");
      }),
    );
  });

  seen(backend);
  hashes(backend);
}

/** One of each way in which an append is written: alone, with rows of its own, with a question. */
const kinds: readonly ((at: number) => GivenEvent)[] = [
  (at) => step("quiet", null, 1, at),
  (at) => ({ ...delayRequested("Delay_a.n:x_1", T0 + 9), seen: at }),
  (at) => ({ ...joinNext("n:x", T0), seen: at }),
  (at) => waiting(at, T0),
];

function seen(backend: Backend): void {
  describe("the responses that an event had seen", () => {
    test(
      "[R1] are no more than there are, whatever its kind and however it is written",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.signal("a", "go", 1);
        for (const event of kinds)
          for (const events of [[event(2)], [step("fine"), event(2)]]) {
            const call = () => store.append("a", 1, events);
            expect(await refusal(fixture, call)).toBe("EVENTS_INVALID");
            expect((await rejection(call())).details).toMatchObject({
              reason: "response",
            });
          }
        expect(await refusal(fixture, () => store.receive("a", "go", 1, { seen: 2 }))).toBe(
          "EVENTS_INVALID",
        );
        let version = 1;
        for (const event of kinds)
          version = (await store.append("a", version, [event(1)])).nextVersion;
        // Nor by a worker that knows where to write, and is given the shortest way.
        await store.create({ id: "b", function: "f" });
        const { key } = await store.lock("b", 1, byAnn);
        const known = { key, fence: ann };
        expect(
          await refusal(fixture, () => store.append("b", 2, [step("quiet", null, 1, 1)], known)),
        ).toBe("EVENTS_INVALID");
        await store.append("b", 2, [step("quiet")], known);
      }),
    );

    test(
      "[R1] are checked for each of many that are appended at once",
      onExecutions(backend, async ({ store }) => {
        const ids = ["a", "b", "c", "d", "e", "f"];
        await Promise.all(ids.map((id) => store.create({ id, function: "f" })));
        await Promise.all(ids.slice(0, 3).map((id) => store.signal(id, "go", 1)));
        const told = await Promise.allSettled(
          ids.map((id) => store.append(id, 1, [step("s", null, 1, 1)])),
        );
        expect(told.map(({ status }) => status)).toEqual([
          "fulfilled",
          "fulfilled",
          "fulfilled",
          "rejected",
          "rejected",
          "rejected",
        ]);
      }),
    );
  });
}

function hashes(backend: Backend): void {
  describe("what an append computes", () => {
    test(
      "is the kind and the hash of a result, whatever the caller claims",
      onExecutions(backend, async ({ store, database }) => {
        const failed: ExecutionResult = {
          kind: "failed",
          error: { name: "E", message: "m" },
        };
        await store.create({ id: "a", function: "f" });
        const forged = { resultKind: "completed", resultHash: "x" };
        await store.append("a", 1, [{ kind: "finished", ...forged, result: failed }]);
        expect(await store.lastEvent("a")).toMatchObject({
          event: {
            resultKind: "failed",
            resultHash: executionContext(database).values.hash(failed),
          },
        });
        expect(await store.result("a")).toEqual(failed);
      }),
    );

    test(
      "is the hash of every input: of a step, of a new run, of a child created with it or asked for alone",
      onExecutions(backend, async ({ store, database }) => {
        const codec = executionContext(database).values;
        await store.create({ id: "a", function: "f" });
        await store.append(
          "a",
          1,
          [
            { ...step("s"), input: { n: 1 } } as GivenEvent,
            step("without"),
            childRequested("n:x", "a.n:x_1", "g"),
            {
              ...childRequested("n:x", "a.n:x_2", "g"),
              input: 2,
            } as GivenEvent,
            { kind: "continued", input: [3] },
          ],
          { children: [{ id: "a.n:x_1", function: "g", input: 1 }] },
        );
        const { items } = await store.events("a", { from: 1 });
        expect(items.map(({ event }) => event)).toMatchObject([
          { inputHash: codec.hash({ n: 1 }) },
          { inputHash: null },
          { inputHash: codec.hash(1) },
          { inputHash: codec.hash(2) },
          { inputHash: codec.hash([3]), input: [3] },
        ]);
      }),
    );

    test(
      "is the end after other events in one append, which tells the parent",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "p", function: "f" });
        await store.create({ id: "p.n:x_1", function: "f" });
        const done = { kind: "completed", value: 1 } as const;
        expect(await store.finish("p.n:x_1", 1, done, { events: [step("last")] })).toEqual({
          nextVersion: 2,
          at: T0,
          parent: { id: "p", seq: 1 },
        });
        expect(await kindsOf(fixture, "p.n:x_1")).toBe("created stepFinished finished");
        expect((await store.responses("p")).items).toMatchObject([
          { response: { child: "p.n:x_1", finishedVersion: 2, result: done } },
        ]);
      }),
    );

    test(
      "is what composing by hand with a prepared append gives too",
      onExecutions(backend, async ({ store, database }) => {
        await store.create({ id: "a", function: "f" });
        const given = [step("by hand", new Map([[1, 2n]]))];
        await database.write("mine", store.append.prepare("a", 1, given));
        expect(await store.lastEvent("a")).toMatchObject({
          event: { name: "by hand", value: new Map([[1, 2n]]), call: 0 },
        });
      }),
    );
  });
}
