import { describe, expect, test } from "vitest";
import { runInterrupted } from "../../../src/stores/execution/topics.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { expectSound } from "../sound.ts";
import { childRequested, step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  byAnn,
  dump,
  kindsOf,
  lockedIds,
  logOf,
  onExecutions,
  refusal,
  responsesOf,
  standing,
} from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

const child = "a.n:x_1";
const grandchild = "a.n:x_1.n:y_1";

/** "a" runs, its child waits, and a child of that runs; a sibling has ended. */
async function family({ store }: ExecutionFixture): Promise<void> {
  await store.createLocked({ id: "a", function: "f" }, byAnn);
  await store.append("a", 2, [step("begun")], { fence: ann });
  await store.create({ id: child, function: "g" });
  await store.append(child, 1, [waiting(0, T0)]);
  await store.createLocked({ id: grandchild, function: "h", role: "activity" }, byAnn);
  await store.create({ id: "a.n:x_2", function: "g", role: "external" });
  await store.create({ id: "a.n:x_3", function: "g" });
  await store.finish("a.n:x_3", 1, { kind: "completed", value: 1 });
}

export function executionForceSuite(backend: Backend): void {
  describe("ending an execution by force", () => {
    test(
      "[R9] ends it and all below it without a worker, each after what is below it",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await family(fixture);
        await store.create({ id: "b", function: "f" });
        expect(await store.cancel("a", { force: true, reason: "gone" })).toBe("cancelled");
        for (const id of ["a", child, grandchild, "a.n:x_2"]) {
          expect(await store.result(id)).toEqual({
            kind: "cancelled",
            reason: "gone",
          });
          expect((await logOf(fixture, id)).at(-2)).toMatchObject([
            expect.any(Number),
            "cancellationRequested",
            { reason: "gone", cause: "force" },
          ]);
        }
        expect(await store.result("a.n:x_3")).toMatchObject({
          kind: "completed",
        });
        // What is below it had ended before it did.
        expect((await responsesOf(fixture, child)).length).toBe(1);
        expect((await responsesOf(fixture, "a")).length).toBe(3);
        expect((await logOf(fixture, "a")).map(([, kind]) => kind)).toEqual([
          "created",
          "locked",
          "stepFinished",
          "cancellationRequested",
          "finished",
        ]);
        expect((await standing(fixture, "b")).version).toBe(0);
        await expectSound(database);
      }),
    );

    test(
      "[R9] may be repeated, and goes on below one that has ended",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await family(fixture);
        await store.finish("a", 3, { kind: "completed", value: 1 });
        expect(await store.cancel("a", { force: true })).toBe("alreadyFinished");
        for (const id of [child, grandchild])
          expect((await store.result(id))?.kind).toBe("cancelled");
        const after = await dump(fixture);
        expect(await store.cancel("a", { force: true })).toBe("alreadyFinished");
        expect(await dump(fixture)).toEqual(after);
        expect(await refusal(fixture, () => store.cancel("nobody", { force: true }))).toBe(
          "EXECUTION_NOT_FOUND",
        );
      }),
    );

    test.each([
      ["is being cancelled", (id: string, { store }: ExecutionFixture) => store.cancel(id)],
      ["is paused", (id: string, { store }: ExecutionFixture) => store.pause(id)],
      [
        "is parked",
        (id: string, { store }: ExecutionFixture) =>
          store.append(id, 3, [{ kind: "parked", code: "X", reason: "x", codeVersion: null }]),
      ],
    ] as const)("[R9] also of what %s", (_, before) =>
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.createLocked({ id: "a", function: "f" }, byAnn);
        await store.append("a", 2, [step("s")], { fence: ann });
        await before("a", fixture);
        expect(await store.cancel("a", { force: true })).toBe("cancelled");
        expect(await store.result("a")).toEqual({ kind: "cancelled" });
        expect(
          await refusal(fixture, () => store.append("a", 5, [step("late")], { fence: ann })),
        ).toBe("EXECUTION_FINISHED");
      })(),
    );

    test(
      "[R9] interrupted, leaves it marked: nobody can lock it or add to it, and the same call goes on",
      onExecutions(backend, async (fixture) => {
        const { store, database, clock } = fixture;
        await family(fixture);
        const abort = new AbortController();
        const stop = database.subscribe((hint) => {
          if (hint.kind === "change" && hint.operation === runInterrupted) abort.abort();
        });
        const { signal } = abort;
        const { code } = await rejection(store.cancel("a", { force: true, signal }));
        expect(code).toBe("ABORTED");
        stop();
        expect(await standing(fixture, "a")).toMatchObject({
          lifecycle: "cancelling",
          pending: { kind: "blocked", on: { kind: "resolution" } },
        });
        clock.advance(100_000);
        expect(await lockedIds(store, 9, "f")).toEqual([]);
        for (const [call, refused] of [
          [() => store.lock("a", 4, byAnn), "LOCK_BLOCKED"],
          [
            () =>
              store.append("a", 4, [step("late")], {
                fence: ann,
                children: [{ id: "a.n:late_1", function: "g" }],
              }),
            "EXECUTION_CANCELLING",
          ],
          [() => store.unlock("a", 4, { holder: ann, reason: "late" }), "EXECUTION_CANCELLING"],
          [() => store.create({ id: "a.n:late_1", function: "g" }), "EXECUTION_CANCELLING"],
        ] as const)
          expect(await refusal(fixture, call)).toBe(refused);
        expect(await store.cancel("a")).toBe("alreadyCancelling");
        expect(await store.cancel("a", { force: true })).toBe("cancelled");
        expect(await kindsOf(fixture, "a")).toBe(
          "created locked stepFinished cancellationRequested finished",
        );
      }),
    );

    test(
      "[R9] of a large tree goes on slice by slice",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const calls: Promise<unknown>[] = [];
        for (let n = 1; n <= 70; n += 1)
          calls.push(
            store
              .create({ id: `a.n:x_${n}`, function: "g" })
              .then(() => store.create({ id: `a.n:x_${n}.n:y_1`, function: "g" })),
          );
        await Promise.all(calls);
        expect(await store.cancel("a", { force: true })).toBe("cancelled");
        const { items, next } = await store.tree("a", { limit: 200 });
        expect(next).toBeUndefined();
        expect(items.length).toBe(141);
        expect(items.filter(({ state }) => state.pending.kind !== "finished")).toEqual([]);
      }),
    );

    test(
      "[R9] ends also what workers still start below it meanwhile",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        const ids = ["a", "a.n:w_1", "a.n:w_2"];
        for (const id of ids) await store.createLocked({ id, function: "f" }, byAnn);
        /** Asks for children until it is refused. */
        const work = async (id: string): Promise<unknown> => {
          for (let n = 1, version = 2; ; n += 1) {
            const next = `${id}.n:x_${n}`;
            const asked = store.append(id, version, [childRequested("n:x", next, "g")], {
              fence: ann,
              children: [{ id: next, function: "g" }],
            });
            const refused = await asked.then(
              () => undefined,
              (error: unknown) => (error as { readonly code?: string }).code,
            );
            if (refused !== undefined) return refused;
            version += 1;
          }
        };
        const workers = ids.map(work);
        expect(await store.cancel("a", { force: true })).toBe("cancelled");
        for (const refused of await Promise.all(workers))
          expect(["EXECUTION_FINISHED", "EXECUTION_CANCELLING", "VERSION_CONFLICT"]).toContain(
            refused,
          );
        let after: string | undefined;
        do {
          const page = await store.tree("a", {
            limit: 500,
            ...(after !== undefined && { after }),
          });
          expect(page.items.filter(({ state }) => state.pending.kind !== "finished")).toEqual([]);
          after = page.next;
        } while (after !== undefined);
        await expectSound(database);
      }),
    );

    test(
      "[R9] ends what nobody serves, found by its function",
      onExecutions(backend, async ({ store }) => {
        for (const id of ["a", "b"]) {
          await store.create({ id, function: "gone" });
          await store.append(id, 1, [step("s"), waiting(0, T0)]);
        }
        await store.create({ id: "c", function: "served" });
        const { items } = await store.list({
          function: "gone",
          hideFinished: true,
        });
        for (const { id } of items)
          expect(await store.cancel(id, { force: true })).toBe("cancelled");
        expect((await store.list({ hideFinished: true })).items.map(({ id }) => id)).toEqual(["c"]);
      }),
    );

    test(
      "[R9] is no part of a transaction, since it takes several",
      onExecutions(backend, async ({ store }) => {
        expect(() => store.cancel.prepare("a", { force: true })).toThrow(
          expect.objectContaining({ code: "OPTION_INVALID" }),
        );
        const { code } = await rejection(store.cancel("a", { force: "yes" } as never));
        expect(code).toBe("OPTION_INVALID");
      }),
    );
  });
}
