import { describe, expect, test } from "vitest";
import { executionContext } from "../../../src/stores/execution/context.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import type { FunctionLimits } from "../../../src/stores/execution/lock/limits.ts";
import { releaseExecution } from "../../../src/stores/execution/timers/release.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { executionId } from "./awaited-executions.ts";
import { step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  bob,
  byAnn,
  byBob,
  kindsOf,
  onExecutions,
  refusal,
  standing,
  stateOfExecution,
} from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

function parked(codeVersion: string | null) {
  const reason = "call 3 was made differently";
  return {
    kind: "parked",
    code: "NONDETERMINISM",
    reason,
    codeVersion,
  } as const;
}

/** What a round of locking by code of a version gets; undefined for code without one. */
async function taken(
  store: Executions,
  codeVersion?: string,
  limits: FunctionLimits = {},
): Promise<readonly string[]> {
  const { locked } = await store.lockPending({
    ...byBob,
    ...(codeVersion !== undefined && { codeVersion }),
    functions: [{ name: "f", ...limits }],
    limit: 9,
  });
  return locked.map(({ id }) => id);
}

/** Whether code of a version would find something to lock. */
async function isAwaited(store: Executions, codeVersion?: string): Promise<boolean> {
  const options = codeVersion === undefined ? {} : { codeVersion };
  const wait = store.waitForPending(["f"], { ...options, timeout: 0 });
  return wait.then(
    () => true,
    () => false,
  );
}

/** "a" has run under v1, and was parked by v2. */
async function parkedByNewer({ store }: ExecutionFixture): Promise<void> {
  await store.create({ id: "a", function: "f" });
  await store.lock("a", 1, { ...byAnn, codeVersion: "v1" });
  await store.append("a", 2, [step("s")], { fence: ann });
  await store.unlock("a", 3, { holder: ann, reason: "busy" });
  await store.lock("a", 4, { ...byAnn, codeVersion: "v2" });
  await store.append("a", 5, [parked("v2")], { fence: ann });
}

export function executionCodeVersionsSuite(backend: Backend): void {
  describe("a run that was parked under a code version", () => {
    test(
      "[R10] goes on with code of another version, and not with that, nor with code without one",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await parkedByNewer(fixture);
        for (const none of ["v2", undefined]) {
          expect(await taken(store, none)).toEqual([]);
          expect(await isAwaited(store, none)).toBe(false);
        }
        expect(await isAwaited(store, "v1")).toBe(true);
        const { locked } = await store.lockPending({
          ...byBob,
          codeVersion: "v1",
          functions: ["f"],
          limit: 9,
        });
        expect(locked).toMatchObject([{ id: "a", nextVersion: 7, previousCodeVersion: "v2" }]);
        expect(await kindsOf(fixture, "a")).toBe(
          "created locked stepFinished unlocked locked parked locked",
        );
        expect(await stateOfExecution(database, "a")).toMatchObject({
          lifecycle: "active",
          codeVersion: "v1",
          incompatible: ["v2"],
        });
      }),
    );

    test(
      "[R10] is not given to that version later either: old and new workers side by side do not take it from each other",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await parkedByNewer(fixture);
        for (let round = 0; round < 3; round += 1) {
          expect(await taken(store, "v2")).toEqual([]);
          expect(await taken(store, "v1")).toEqual(["a"]);
          const { version } = await standing(fixture, "a");
          await store.unlock("a", version + 1, { holder: bob, reason: "busy" });
          expect(await isAwaited(store, "v2")).toBe(false);
        }
        const { version } = await standing(fixture, "a");
        expect(
          await refusal(fixture, () =>
            store.lock("a", version + 1, { ...byAnn, codeVersion: "v2" }),
          ),
        ).toBe("LOCK_INCOMPATIBLE");
        // Code that says nothing of its version gets what is not parked.
        expect(await taken(store)).toEqual(["a"]);
      }),
    );

    test(
      "[R10] can be locked by its id by code that lockPending would give it to",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await parkedByNewer(fixture);
        for (const options of [byAnn, { ...byAnn, codeVersion: "v2" }])
          expect(await refusal(fixture, () => store.lock("a", 6, options))).toBe(
            "EXECUTION_PARKED",
          );
        await store.lock("a", 6, { ...byAnn, codeVersion: "v3" });
        expect((await standing(fixture, "a")).lifecycle).toBe("active");
        await store.append("a", 7, [parked("v3")], { fence: ann });
        for (const version of ["v2", "v3"]) expect(await taken(store, version)).toEqual([]);
        expect(await taken(store, "v1")).toEqual(["a"]);
      }),
    );

    test(
      "[R10] while it waits, is there for other code once what it waits for has come",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [waiting(0, T0), parked("v1")]);
        expect(await taken(store, "v2")).toEqual([]);
        await store.signal("a", "go", 1);
        expect(await taken(store, "v1")).toEqual([]);
        expect(await taken(store, "v2")).toEqual(["a"]);
      }),
    );

    test(
      "[R10] wakes a worker of another version that waits for work",
      onExecutions(backend, async ({ store }) => {
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, { ...byAnn, codeVersion: "v1" });
        const wait = store.waitForPending(["f"], {
          codeVersion: "v2",
          timeout: "1 day",
        });
        await store.append("a", 2, [parked("v1")], { fence: ann });
        await wait;
        expect(await taken(store, "v2")).toEqual(["a"]);
      }),
    );

    test.each([
      ["it is unparked by hand", (fixture: ExecutionFixture) => fixture.store.unpark("a")],
      [
        "it is cancelled: any code may end it",
        (fixture: ExecutionFixture) => fixture.store.cancel("a"),
      ],
    ] as const)("[R10] is forgotten when %s", (_, change) =>
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await parkedByNewer(fixture);
        await change(fixture);
        const { incompatible } = await stateOfExecution(database, "a");
        expect(incompatible).toEqual([]);
        expect(await taken(store, "v2")).toEqual(["a"]);
      })(),
    );

    test(
      "[R10] is forgotten when it starts anew, and kept when it is cancelled while other code runs it",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await parkedByNewer(fixture);
        expect(await taken(store, "v1")).toEqual(["a"]);
        await store.cancel("a");
        await store.unlock("a", 8, { holder: bob, reason: "busy" });
        expect(await taken(store, "v2")).toEqual([]);
        expect(await taken(store, "v1")).toEqual(["a"]);

        await store.create({ id: "b", function: "f" });
        await store.append("b", 1, [parked("v1")]);
        expect(await taken(store, "v2")).toEqual(["b"]);
        await store.append("b", 3, [{ kind: "continued", input: 2 }]);
        expect(await taken(store, "v1")).toEqual(["b"]);
      }),
    );
  });

  describe("a run that was parked for another reason", () => {
    test(
      "[R10] waits for somebody to unpark it, whatever was parked before",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await parkedByNewer(fixture);
        expect(await taken(store, "v1")).toEqual(["a"]);
        await store.append("a", 7, [parked(null)], { fence: bob });
        for (const version of ["v1", "v2", "v3", undefined])
          expect(await taken(store, version)).toEqual([]);
        await store.unpark("a");
        const { incompatible } = await stateOfExecution(database, "a");
        expect(incompatible).toEqual([]);
        expect(await taken(store, "v2")).toEqual(["a"]);
      }),
    );

    test(
      "[R10] such as that it keeps killing its workers",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await store.create({ id: "a", function: "f" });
        for (let death = 1; death <= 8; death += 1) {
          clock.advance(60_000);
          const { locked } = await store.lockPending({
            ...byAnn,
            functions: ["f"],
            limit: 1,
            codeVersion: "v1",
            suspects: "alone",
          });
          expect(locked).toMatchObject([{ isAlone: death > 3 }]);
          await database.write(releaseExecution(executionContext(database)), {
            id: executionId("a"),
            owner: database.owner,
            at: clock.now(),
            random: 0,
          });
        }
        expect((await standing(fixture, "a")).lifecycle).toBe("parked");
        clock.advance(60_000);
        expect(await taken(store, "v2")).toEqual([]);
      }),
    );
  });

  among(backend);
}

function among(backend: Backend): void {
  describe("runs that remember code versions", () => {
    test(
      "[R10] are locked with the others, the longest due first, and hide nothing from who may not have them",
      onExecutions(backend, async ({ store, clock }) => {
        for (const id of ["a", "b", "c", "d"]) {
          await store.create({
            id,
            function: "f",
            startAt: { at: clock.now() },
          });
          clock.advance(1);
        }
        await store.append("b", 1, [parked("v1")]);
        await store.append("d", 1, [parked("v2")]);
        expect(await taken(store, "v1")).toEqual(["a", "c", "d"]);
        expect(await taken(store, "v2")).toEqual(["b"]);
      }),
    );

    test(
      "[R10] count against limits, and are waited for by those who may have them",
      onExecutions(backend, async ({ store, clock }) => {
        for (const id of ["a", "b", "c"]) {
          await store.create({ id, function: "f", concurrencyKey: "k" });
          await store.append(id, 1, [parked("v1")]);
        }
        for (const limits of [{ perKeyMax: 1 }, { concurrencyMax: 2 }])
          expect((await taken(store, "v2", limits)).length).toBe(1);
        const full = [{ name: "f", concurrencyMax: 2 }];
        const wait = (codeVersion: string) =>
          store.waitForPending(full, { codeVersion, timeout: 0 });
        expect((await rejection(wait("v2"))).code).toBe("DEADLINE_EXCEEDED");
        await store.finish("a", 3, { kind: "completed", value: 1 });
        await wait("v2");
        expect((await rejection(wait("v1"))).code).toBe("DEADLINE_EXCEEDED");
        await store.append("c", 2, [
          { kind: "unparked" },
          { kind: "unlocked", dueAt: clock.now() - 5, reason: "r" },
        ]);
        await wait("v1");
      }),
    );

    test(
      "[R10] remember the newest of very many, however they are named",
      onExecutions(backend, async ({ store, database }) => {
        await store.create({ id: "a", function: "f" });
        const named = (n: number) => `${n}${"\u3042".repeat(120)}`;
        for (let n = 1; n <= 12; n += 1) {
          const codeVersion = named(n);
          const { version } = await standing({ database }, "a");
          await store.lock("a", version + 1, { ...byAnn, codeVersion });
          await store.append("a", version + 2, [parked(codeVersion)]);
        }
        const { incompatible } = await stateOfExecution(database, "a");
        expect(incompatible).toEqual([9, 10, 11, 12].map(named));
        expect(await taken(store, named(12))).toEqual([]);
        expect(await taken(store, named(13))).toEqual(["a"]);
      }),
    );
  });
}
