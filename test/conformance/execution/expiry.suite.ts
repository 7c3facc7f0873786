import { describe, expect, test } from "vitest";
import { parseExecutionId } from "../../../src/model/ids/execution-id.ts";
import { parseOwnerId } from "../../../src/model/ids/prefixed-id.ts";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { expireLock } from "../../../src/stores/execution/timers/expire.ts";
import { heldBy, releaseExecution } from "../../../src/stores/execution/timers/release.ts";
import type { Backend } from "../backend.ts";
import { step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  byAnn,
  dump,
  kindsOf,
  logOf,
  onExecutions,
  responsesOf,
  standing,
  stateOfExecution,
} from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

const id = "p.n:x_1";

/** Parent "p" and its child, locked for a second. */
async function lockedChild(
  { store }: ExecutionFixture,
  role: "activity" | "workflow",
  maxRetries: number | null = 1,
): Promise<void> {
  await store.create({ id: "p", function: "parent" });
  await store.createLocked(
    { id, function: "f", role },
    {
      ...byAnn,
      retry: { maxRetries, backoffMs: 300, backoffMaxMs: 60_000 },
    },
  );
}

async function expire({ database, clock }: ExecutionFixture, random = 0): Promise<string> {
  const { outcome } = await database.write(expireLock(executionContext(database)), {
    id: parseExecutionId(id),
    at: clock.now(),
    random,
  });
  return outcome;
}

async function die({ database, clock }: ExecutionFixture, owner = database.owner): Promise<string> {
  const { outcome } = await database.write(releaseExecution(executionContext(database)), {
    id: parseExecutionId(id),
    owner,
    at: clock.now(),
    random: 0,
  });
  return outcome;
}

export function executionExpirySuite(backend: Backend): void {
  describe("a lock that runs out", () => {
    test(
      "is a death of an activity's worker: backed off; of one that may be attempted once final, and the parent is told",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await lockedChild(fixture, "activity", 1);
        clock.advance(999);
        const before = await dump(fixture);
        expect(await expire(fixture)).toBe("notExpired");
        expect(await dump(fixture)).toEqual(before);
        clock.advance(1);
        expect(await expire(fixture)).toBe("expired");
        expect(await standing(fixture, id)).toEqual({
          version: 2,
          lifecycle: "active",
          pending: {
            kind: "pending",
            dueAt: T0 + 1_300,
            leaseUntil: null,
            lastLock: { ...ann, owner: database.owner },
          },
        });
        expect(await expire(fixture)).toBe("notExpired");
        expect((await logOf(fixture, id)).at(-1)).toEqual([
          2,
          "attemptTimedOut",
          { dueAt: T0 + 1_300, counts: "death" },
        ]);
        expect(await stateOfExecution(database, id)).toMatchObject({ failures: 0, deaths: 1 });
        clock.advance(300);
        const retry = { maxRetries: 0, backoffMs: 300, backoffMaxMs: 60_000 };
        expect(await store.lock(id, 3, { ...byAnn, retry })).toMatchObject({ attempt: 2 });
        clock.advance(1_000);
        expect(await expire(fixture)).toBe("expired");
        expect(await kindsOf(fixture, id)).toBe("created locked attemptTimedOut locked finished");
        expect(await responsesOf(fixture, "p")).toEqual([
          [1, T0 + 2_300, "n:x", id, "timedOut", 4],
        ]);
      }),
    );

    test(
      "is spread a little, so that what failed together does not come back together",
      onExecutions(backend, async (fixture) => {
        await lockedChild(fixture, "activity");
        fixture.clock.advance(1_000);
        await expire(fixture, 0.5);
        expect((await standing(fixture, id)).pending).toMatchObject({
          dueAt: T0 + 1_000 + 263,
        });
      }),
    );

    test(
      "is no failure of a workflow that got further: it goes on at once",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await lockedChild(fixture, "workflow", null);
        await store.append(id, 2, [step("further")], { fence: ann });
        clock.advance(1_000);
        await expire(fixture);
        expect(await kindsOf(fixture, id)).toBe("created locked stepFinished unlocked");
        expect((await standing(fixture, id)).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 1_000,
        });
        expect((await stateOfExecution(database, id)).failures).toBe(0);
      }),
    );

    test(
      "of a workflow that got no further has a pause, which grows up to a bound",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await lockedChild(fixture, "workflow", null);
        const pauses: number[] = [];
        for (let version = 3; version <= 9; version += 2) {
          clock.advance(1_000);
          await expire(fixture);
          const { pending } = await standing(fixture, id);
          if (pending.kind !== "pending") throw new Error(pending.kind);
          pauses.push(pending.dueAt - clock.now());
          clock.set(pending.dueAt);
          const retry = {
            maxRetries: null,
            backoffMs: 300,
            backoffMaxMs: 1_000,
          };
          await store.lock(id, version, { ...byAnn, retry });
        }
        // The first pause is by the terms of the first lock.
        expect(pauses).toEqual([300, 600, 1_000, 1_000]);
      }),
    );

    test(
      "[R4] ends no workflow, whatever its policy: with history and children it stays as it is, and is due again",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await lockedChild(fixture, "workflow", 0);
        await store.create({ id: `${id}.n:y_1`, function: "g" });
        for (const [deaths, version] of [
          [1, 3],
          [2, 5],
        ] as const) {
          clock.advance(1_000);
          expect(await expire(fixture)).toBe("expired");
          expect(await stateOfExecution(database, id)).toMatchObject({
            lifecycle: "active",
            failures: 0,
            deaths,
            pending: { kind: "pending" },
          });
          clock.advance(1_000);
          const retry = { maxRetries: 0, backoffMs: 300, backoffMaxMs: 60_000 };
          await store.lock(id, version, { ...byAnn, retry });
        }
        expect(await kindsOf(fixture, id)).toBe(
          "created locked attemptTimedOut locked attemptTimedOut locked",
        );
        expect(await responsesOf(fixture, "p")).toEqual([]);
      }),
    );

    test(
      "does nothing once the worker extended it, gave it back or waits",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await lockedChild(fixture, "workflow");
        clock.advance(1_000);
        await store.lock(id, 2, byAnn);
        expect(await expire(fixture)).toBe("notExpired");
        await store.append(id, 3, [waiting(0, T0 + 2_000)], { fence: ann });
        clock.advance(5_000);
        expect(await expire(fixture)).toBe("notExpired");
      }),
    );

    test.each([
      ["activity", "created locked cancellationRequested finished"],
      ["workflow", "created locked cancellationRequested attemptTimedOut"],
    ] as const)("while an %s is being cancelled does not retry it", (role, kinds) =>
      onExecutions(backend, async (fixture) => {
        await lockedChild(fixture, role);
        await fixture.store.cancel(id);
        fixture.clock.advance(1_000);
        expect(await expire(fixture)).toBe("expired");
        expect(await kindsOf(fixture, id)).toBe(kinds);
        expect(await standing(fixture, id)).toMatchObject(
          role === "activity"
            ? { pending: { kind: "finished", resultKind: "cancelled" } }
            : { pending: { kind: "pending" }, lifecycle: "cancelling" },
        );
      })(),
    );
  });

  deathTests(backend);
}

function deathTests(backend: Backend): void {
  const stranger = parseOwnerId("Own_01ARZ3NDEKTSV4RRFFQ69G5FAV");

  describe("the death of the process that holds an execution", () => {
    test(
      "is counted for an activity: backed off; of one that may be attempted once final with the reason, and the parent is told",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await lockedChild(fixture, "activity");
        clock.advance(10);
        expect(await die(fixture)).toBe("released");
        expect((await standing(fixture, id)).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 310,
        });
        expect(await stateOfExecution(database, id)).toMatchObject({ failures: 0, deaths: 1 });
        expect((await logOf(fixture, id)).at(-1)).toEqual([
          2,
          "ownerDied",
          { owner: database.owner, dueAt: T0 + 310, counts: "death" },
        ]);
        clock.advance(300);
        const retry = { maxRetries: 0, backoffMs: 300, backoffMaxMs: 60_000 };
        await store.lock(id, 3, { ...byAnn, retry });
        expect(await die(fixture)).toBe("released");
        expect(await store.lock("p", 1, byAnn)).toMatchObject({
          responses: [
            {
              response: {
                child: id,
                finishedVersion: 4,
                result: { kind: "failed", error: { code: "OWNER_DIED" } },
              },
            },
          ],
        });
      }),
    );

    test(
      "is free for a workflow that got further: due at once, and no death is counted",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await lockedChild(fixture, "workflow");
        await die(fixture);
        clock.advance(300);
        await store.lock(id, 3, byAnn);
        await store.append(id, 4, [step("further")], { fence: ann });
        clock.advance(10);
        expect(await die(fixture)).toBe("released");
        expect((await standing(fixture, id)).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 310,
        });
        const { deaths: counted, failures } = await stateOfExecution(database, id);
        expect([counted, failures]).toEqual([0, 0]);
      }),
    );

    test(
      "without progress is backed off, however many there are, and parks no run that ran beside others",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await lockedChild(fixture, "workflow");
        const pauses: number[] = [];
        for (let version = 3; version <= 15; version += 2) {
          await die(fixture);
          const { pending } = await standing(fixture, id);
          if (pending.kind !== "pending") throw new Error(pending.kind);
          pauses.push(pending.dueAt - clock.now());
          clock.set(pending.dueAt);
          const retry = { maxRetries: 0, backoffMs: 300, backoffMaxMs: 60_000 };
          await store.lock(id, version, { ...byAnn, retry });
        }
        expect(pauses).toEqual([300, 600, 1_200, 2_400, 4_800, 9_600, 19_200]);
        await die(fixture);
        expect(await stateOfExecution(database, id)).toMatchObject({
          lifecycle: "active",
          deaths: 8,
          aloneDeaths: 0,
        });
      }),
    );

    test(
      "that nobody can prove is a lock that runs out: it counts with the others",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await store.create({ id: "w", function: "f" });
        const retry = { maxRetries: null, backoffMs: 300, backoffMaxMs: 1_000 };
        for (const version of [1, 3, 5, 7, 9]) {
          expect((await standing(fixture, "w")).lifecycle).toBe("active");
          await store.lock("w", version, { ...byAnn, retry });
          clock.advance(60_000);
          await store.expireTimers();
          clock.advance(60_000);
        }
        expect((await logOf(fixture, "w")).at(-1)).toMatchObject([
          10,
          "attemptTimedOut",
          { counts: "death" },
        ]);
        expect(await stateOfExecution(database, "w")).toMatchObject({
          lifecycle: "active",
          failures: 0,
          deaths: 5,
        });
      }),
    );

    test(
      "that nobody can prove counts for nothing after progress",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await store.create({ id: "w", function: "f" });
        await store.lock("w", 1, byAnn);
        clock.advance(60_000);
        await store.expireTimers();
        expect((await stateOfExecution(database, "w")).deaths).toBe(1);
        clock.advance(60_000);
        await store.lock("w", 3, byAnn);
        await store.append("w", 4, [step("further")], { fence: ann });
        clock.advance(60_000);
        await store.expireTimers();
        expect((await logOf(fixture, "w")).at(-1)?.[1]).toBe("unlocked");
        expect((await stateOfExecution(database, "w")).deaths).toBe(0);
      }),
    );

    test(
      "frees one that it kept in memory while it waited: nothing was running",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await lockedChild(fixture, "workflow");
        await store.append(id, 2, [waiting(0, T0 + 1_000)], { fence: ann });
        expect(await die(fixture)).toBe("released");
        expect((await standing(fixture, id)).pending).toMatchObject({
          kind: "blocked",
          leaseUntil: null,
        });
        await store.signal(id, "go", 1);
        expect((await standing(fixture, id)).pending).toMatchObject({
          kind: "pending",
          dueAt: T0,
        });
        expect((await stateOfExecution(database, id)).deaths).toBe(0);
      }),
    );

    test(
      "is recorded once, and only for what it held",
      onExecutions(backend, async (fixture) => {
        const { database, store, clock } = fixture;
        const held = async (owner = database.owner): Promise<readonly string[]> =>
          (
            await database.read(heldBy(executionContext(database)), {
              owner,
              at: clock.now(),
              limit: 9,
            })
          ).ids;
        await lockedChild(fixture, "workflow");
        expect(await held()).toEqual([id]);
        expect(await held(stranger)).toEqual([]);
        const before = await dump(fixture);
        expect(await die(fixture, stranger)).toBe("notHeld");
        expect(await dump(fixture)).toEqual(before);
        await store.append(id, 2, [waiting(0, T0 + 1_000)], { fence: ann });
        expect(await held()).toEqual([id]);
        clock.set(T0 + 1_000);
        expect(await held()).toEqual([]);
        clock.set(T0);
        await die(fixture);
        expect(await held()).toEqual([]);
        const after = await dump(fixture);
        expect(await die(fixture)).toBe("notHeld");
        expect(await dump(fixture)).toEqual(after);
      }),
    );

    test.each([
      ["activity", "created locked cancellationRequested finished"],
      ["workflow", "created locked cancellationRequested ownerDied"],
    ] as const)("while an %s is being cancelled", (role, kinds) =>
      onExecutions(backend, async (fixture) => {
        await lockedChild(fixture, role);
        await fixture.store.cancel(id);
        expect(await die(fixture)).toBe("released");
        expect(await kindsOf(fixture, id)).toBe(kinds);
      })(),
    );
  });
}
