import { describe, expect, test } from "vitest";
import { HoldfastError } from "../../../src/model/errors.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Statement } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import { rejection, type Backend } from "../backend.ts";
import { delayRequested, joinNext, step } from "./execution-events.ts";
import { T0, byAnn, onExecutions, standing } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";
import { pastChecks } from "../past-checks.ts";

/** Does what only somebody with a database shell can. */
async function edit(
  { database }: ExecutionFixture,
  ...statements: readonly Statement[]
): Promise<void> {
  for (const statement of statements)
    await database.write("edit", () => pastChecks(database, statement));
}

const kindOf = async (fixture: ExecutionFixture, id: string): Promise<string> =>
  (await standing(fixture, id)).pending.kind;

export function executionSweepsSuite(backend: Backend): void {
  describe("a sweep past what cannot be dealt with", () => {
    test(
      "ends what is late although another row contradicts itself, and names that",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        for (const id of ["a", "b", "c"]) await store.create({ id, function: "f", deadline: 10 });
        await edit(fixture, sql`UPDATE holdfast_execution SET due_at = NULL WHERE id = 'a'`);
        clock.advance(100);
        expect(await store.expireTimers()).toEqual({
          delays: 0,
          locks: 0,
          deadlines: 2,
          parked: [],
          cancelled: [],
          ended: ["b", "c"].map((id) => ({ id, function: "f", result: { kind: "timedOut" } })),
          attemptsLost: [],
          damaged: [{ table: "holdfast_execution", key: "a" }],
          hasMore: false,
        });
        expect(await kindOf(fixture, "c")).toBe("finished");
      }),
    );

    test(
      "[RN4] reports what it recorded although the database failed at another timer",
      onExecutions(backend, async ({ store, clock, database }) => {
        for (const id of ["a", "b"]) await store.create({ id, function: "f", deadline: 10 });
        clock.advance(100);
        let failures = 2;
        const failing = new Proxy(database, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name, target);
            if (typeof value !== "function") return value;
            if (name !== "write") return value.bind(target) as unknown;
            return (operation: { name: string }, input: { id?: string }, ...rest: unknown[]) => {
              if (operation.name !== "expireDeadline" || input.id !== "a" || failures === 0)
                return (value as (...given: unknown[]) => unknown).call(
                  target,
                  operation,
                  input,
                  ...rest,
                );
              failures -= 1;
              return Promise.reject(new HoldfastError("DATABASE_BUSY", "It is busy.", {}));
            };
          },
        });
        const sweeping = executions(failing, { clock });
        const b = { id: "b", function: "f", result: { kind: "timedOut" } };
        expect(await sweeping.expireTimers()).toMatchObject({ ended: [b], hasMore: true });
        expect(await rejection(sweeping.expireTimers())).toMatchObject({ code: "DATABASE_BUSY" });
        const a = { ...b, id: "a" };
        expect(await sweeping.expireTimers()).toMatchObject({ ended: [a], hasMore: false });
      }),
    );

    test(
      "goes on after a whole page of them, within one call",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        for (const id of ["a", "b", "c", "d"])
          await store.create({ id, function: "f", deadline: 10 });
        await edit(
          fixture,
          sql`UPDATE holdfast_execution SET due_at = NULL WHERE id IN ('a', 'b', 'c')`,
        );
        clock.advance(100);
        const report = await store.expireTimers({ limit: 1 });
        expect(report).toMatchObject({ deadlines: 1, hasMore: false });
        expect(report.damaged.map(({ key }) => key)).toEqual(["a", "b", "c"]);
        expect(await kindOf(fixture, "d")).toBe("finished");
      }),
    );

    test(
      "ends other children although the parent of one is gone",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        for (const parent of ["gone", "here"]) {
          await store.create({ id: parent, function: "f" });
          const id = `${parent}.n:x_1`;
          await store.create({ id, function: "g", role: "activity" });
          await store.lock(id, 1, {
            ...byAnn,
            retry: { maxRetries: 0, backoffMs: 1, backoffMaxMs: 1 },
          });
        }
        await edit(fixture, sql`DELETE FROM holdfast_execution WHERE id = 'gone'`);
        clock.advance(1_000);
        expect(await store.expireTimers()).toMatchObject({
          locks: 1,
          damaged: [{ table: "holdfast_execution", key: "gone.n:x_1" }],
        });
        expect(await kindOf(fixture, "here.n:x_1")).toBe("finished");
      }),
    );

    test(
      "answers the delays of one execution in the order of their expiry",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const ids = Array.from({ length: 20 }, (_, n) => `run-${n}`);
        for (const id of ids) {
          await store.create({ id, function: "f" });
          await store.append(
            id,
            1,
            [3, 1, 2].map((n) => delayRequested(`Delay_${id}.n:x_${n}`, T0 + n)),
          );
        }
        clock.advance(100);
        expect(await store.expireTimers()).toMatchObject({ delays: 60 });
        for (const id of ids) {
          const { items } = await store.responses(id);
          expect(items.map(({ response }) => "delay" in response && response.delay)).toEqual(
            [1, 2, 3].map((n) => `Delay_${id}.n:x_${n}`),
          );
        }
      }),
    );

    test(
      "releases the rest of what a dead process held",
      onExecutions(backend, async (fixture) => {
        const { store, database, clock } = fixture;
        for (const id of ["a", "b", "c"]) {
          await store.create({ id, function: "f" });
          await store.lock(id, 1, byAnn);
        }
        await edit(fixture, sql`UPDATE holdfast_execution SET lock_version = NULL WHERE id = 'a'`);
        // As somebody sees it to whom this process is dead.
        const seen: Database = Object.create(database, {
          liveness: { value: () => Promise.resolve("dead") },
        }) as Database;
        const survivor = executions(bound(seen, database), { clock });
        const report = {
          released: 2,
          parked: [],
          cancelled: [],
          ended: [],
          attemptsLost: [],
          damaged: [{ table: "holdfast_execution", key: "a" }],
        };
        expect(await survivor.releaseDead()).toEqual(report);
        expect(await survivor.releaseDead(database.owner)).toEqual({
          ...report,
          released: 0,
        });
        expect(await kindOf(fixture, "c")).toBe("pending");
      }),
    );
  });

  damagedValues(backend);
}

/** Private fields are found on the object they belong to only. */
function bound(seen: Database, real: Database): Database {
  return new Proxy(seen, {
    get(target, name) {
      const isOwn = Object.hasOwn(target, name);
      const value: unknown = Reflect.get(isOwn ? target : real, name, isOwn ? target : real);
      return typeof value === "function" && !isOwn
        ? (value as (...given: unknown[]) => unknown).bind(real)
        : value;
    },
  });
}

function damagedValues(backend: Backend): void {
  describe("a list with a value that cannot be read", () => {
    test(
      "shows the other events, and names that one",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f", input: 1 });
        await store.append("a", 1, [step("one", 1), step("two", 2)]);
        await edit(
          fixture,
          sql`UPDATE holdfast_execution_event SET payload = '{bad' WHERE version = 1`,
        );
        const { items, damaged } = await store.events("a");
        expect(items.map(({ version }) => version)).toEqual([0, 2]);
        expect(damaged).toEqual([{ table: "holdfast_execution_event", key: "a#1" }]);
        expect((await store.get("a")).nextVersion).toBe(3);
      }),
    );

    test(
      "shows the other responses and log lines",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [joinNext("n:x", T0)]);
        for (const n of [1, 2]) await store.signal("a", "go", n);
        await store.log("a", [
          { level: "info", message: "one", data: 1 },
          { level: "info", message: "two", data: 2 },
        ]);
        await edit(
          fixture,
          sql`UPDATE holdfast_execution_response SET payload = '{bad' WHERE seq = 1`,
          sql`UPDATE holdfast_execution_log SET payload = '{bad' WHERE message = 'one'`,
        );
        const responses = await store.responses("a");
        expect(responses.items.map(({ seq }) => seq)).toEqual([2]);
        expect(responses.damaged).toEqual([{ table: "holdfast_execution_response", key: "a#1" }]);
        const logs = await store.logs("a");
        expect(logs.items.map(({ data }) => data)).toEqual([2]);
        expect(logs.damaged).toMatchObject([{ table: "holdfast_execution_log" }]);
      }),
    );

    test(
      "is read by another codec only in part",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await store.create({ id: "a", function: "f", input: "plain" });
        const picky = executions(database, {
          payload: {
            name: "picky",
            encode: (text) => text,
            decode: (text) => {
              if (text.includes("plain")) throw new Error("no key");
              return text;
            },
            hash: "sha256",
          },
        });
        await picky.append("a", 1, [step("s", 1)]);
        const { items, damaged } = await picky.events("a");
        expect(items.map(({ version }) => version)).toEqual([1]);
        expect(damaged).toEqual([{ table: "holdfast_execution_event", key: "a#0" }]);
      }),
    );
  });
}
