import { describe, expect, test } from "vitest";
import type { Backend } from "../backend.ts";
import { step } from "./execution-events.ts";
import { T0, byAnn, byBob, onExecutions } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

const no = { kind: "failed", error: { name: "Error", message: "no" } } as const;
const continued = { kind: "continued", input: "new" } as const;

/** Computed by an independent implementation, for "order-42" and its first new start. */
const seed = 0x586d_07f2_8908_894fn;
const seedAnew = 0x79f7_be97_0f21_a398n;

/** What the code of a run computes from, as a worker is given it. */
async function origin({ store }: ExecutionFixture, id: string): Promise<Record<string, unknown>> {
  const { nextVersion } = (await store.get(id)) as { nextVersion: number };
  const locked = await store.lock(id, nextVersion, byAnn);
  const { seed: given, startedAt, created, continuations } = locked;
  const { scheduledAt } = created;
  return { seed: given, startedAt, scheduledAt, continuations };
}

export function executionOriginSuite(backend: Backend): void {
  describe("what replay computes from", () => {
    test(
      "[R3] is the seed of the id and the instant of the creation, however it is locked",
      onExecutions(backend, async ({ store, clock }) => {
        await store.create({ id: "order-42", function: "f" });
        clock.advance(5);
        const { locked } = await store.lockPending({
          ...byBob,
          functions: ["f"],
          limit: 1,
        });
        expect(locked).toMatchObject([{ seed, startedAt: T0 }]);
        const again = { holder: byBob.holder, lease: 2_000 };
        expect(await store.lock("order-42", 2, again)).toMatchObject({
          seed,
          startedAt: T0,
        });
        // Mixed over a whole id, so that children have seeds of their own.
        const child = { id: "order-42.o:7_1", function: "g" };
        expect(await store.createLocked(child, byAnn)).toMatchObject({
          locked: { seed: 0x5192_f5b8_39a2_6c88n, startedAt: T0 + 5 },
        });
      }),
    );

    test(
      "[R3] stays through a fork, a retry and a fork of the fork; only the row is newer",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const startAt = { in: 3 } as const;
        await store.create({ id: "order-42", function: "f", startAt });
        await store.append("order-42", 1, [step("one"), step("two")]);
        await store.finish("order-42", 3, no);
        clock.advance(100);
        await store.fork("order-42", 1, { id: "fork" });
        clock.advance(100);
        await store.retry("order-42", { id: "retry" });
        await store.append("fork", 3, [step("three")]);
        await store.fork("fork", 3, { id: "fork-of-fork" });
        await store.finish("fork-of-fork", 5, no);
        clock.advance(100);
        await store.retry("fork-of-fork", { id: "last" });
        for (const id of ["fork", "retry", "last"])
          expect(await origin(fixture, id)).toEqual({
            seed,
            startedAt: T0,
            scheduledAt: T0 + 3,
            continuations: 0,
          });
        expect(await store.get("last")).toMatchObject({
          createdAt: T0 + 300,
          scheduledAt: T0 + 3,
        });
        expect(await store.created("last")).toMatchObject({
          forkedFrom: {
            execution: "fork-of-fork",
            original: { execution: "order-42", createdAt: T0 },
          },
        });
      }),
    );

    test(
      "[R3] changes when the run starts anew, so that nothing it draws repeats, and stays so in copies",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "order-42", function: "f" });
        await store.append("order-42", 1, [step("one")]);
        clock.advance(7);
        await store.append("order-42", 2, [continued]);
        clock.advance(7);
        await store.fork("order-42", 2, { id: "fork" });
        await store.fork("order-42", 1, { id: "from-before" });
        const anew = {
          seed: seedAnew,
          startedAt: T0 + 7,
          scheduledAt: T0,
          continuations: 1,
        };
        expect(await origin(fixture, "order-42")).toEqual(anew);
        expect(await origin(fixture, "fork")).toEqual(anew);
        expect(await origin(fixture, "from-before")).toEqual({
          seed,
          startedAt: T0,
          scheduledAt: T0,
          continuations: 0,
        });
      }),
    );
  });
}
