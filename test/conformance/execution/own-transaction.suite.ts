import { describe, expect, test } from "vitest";
import type { ExecutionId } from "../../../src/model/ids/execution-id.ts";
import type { Tx } from "../../../src/sql/operation.ts";
import { executionContext } from "../../../src/stores/execution/context.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import { recordTransaction } from "../../../src/stores/execution/log/transaction.ts";
import type { Backend } from "../backend.ts";
import { expectSound } from "../sound.ts";
import { step } from "./execution-events.ts";
import {
  T0,
  ann,
  kindsOf,
  onExecutions,
  refusal,
  responsesOf,
  standing,
  stateOfExecution,
  type ExecutionFixture,
} from "./fixture.ts";
import { parentOf, result } from "./parent.ts";

/** A transaction of `p`, whose event is to get a version, with a body that may use every part of the store. */
async function inTransaction(
  { database, clock }: ExecutionFixture,
  version: number,
  body: () => Tx<unknown>,
): Promise<unknown> {
  const context = executionContext(database, { clock });
  const input = {
    id: "p" as ExecutionId,
    version,
    at: clock.now(),
    name: "t",
    call: 9,
    seen: 0,
    fence: ann,
  };
  return database.write("transaction t", () => recordTransaction(context, input, body), {
    isolation: "readCommitted",
  });
}

async function lockedParent(fixture: ExecutionFixture): Promise<number> {
  const version = await parentOf(fixture, ["p.n:x_1"]);
  await fixture.store.lock("p", version, { holder: ann, lease: 10_000 });
  return version + 1;
}

export function executionOwnTransactionSuite(backend: Backend): void {
  describe("a transaction of an execution", () => {
    test(
      "[R12] keeps the answers that its body gives to the execution",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        const version = await lockedParent(fixture);
        const { pending } = await stateOfExecution(database, "p");
        await inTransaction(fixture, version, function* () {
          yield* store.finish.prepare("p.n:x_1", 1, result)();
          yield* store.signal.prepare("p", "go", 1, { key: "k" })();
        });
        expect(await stateOfExecution(database, "p")).toMatchObject({
          version,
          responses: 2,
          pending,
        });
        expect((await responsesOf(fixture, "p")).map(([seq, , , source]) => [seq, source])).toEqual(
          [
            [1, "p.n:x_1"],
            [2, "s:go k"],
          ],
        );
        await store.cancel("p");
        await expectSound(database);
      }),
    );

    test(
      "[R12] leaves the execution due when its body answers one that waits in memory",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        const version = await lockedParent(fixture);
        const waiting = {
          kind: "waiting",
          runExpiresAt: T0 + 10_000,
          wakeAt: null,
          call: 8,
          seen: 0,
        };
        await store.append("p", version, [waiting as never], { fence: ann });
        await inTransaction(fixture, version + 1, function* () {
          yield* store.signal.prepare("p", "go", 1)();
        });
        expect(await standing(fixture, "p")).toMatchObject({
          version: version + 1,
          pending: { kind: "pending", dueAt: T0 + 10_000, lastLock: ann },
        });
        await expectSound(database);
      }),
    );

    type Change = (store: Executions, version: number) => () => Tx<unknown>;
    const changes: readonly (readonly [string, Change])[] = [
      ["appends to it", (store, version) => store.append.prepare("p", version, [step("inside")])],
      ["ends it", (store, version) => store.finish.prepare("p", version, result)],
      [
        "gives it back",
        (store, version) => store.unlock.prepare("p", version, { holder: ann, reason: "closing" }),
      ],
      ["cancels it", (store) => store.cancel.prepare("p")],
      ["pauses it", (store) => store.pause.prepare("p")],
    ];
    for (const [change, made] of changes)
      test(
        `[R12] is refused as a whole when its body ${change}`,
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          const version = await lockedParent(fixture);
          const before = await kindsOf(fixture, "p");
          const body = made(store, version);
          expect(
            await refusal(fixture, () =>
              inTransaction(fixture, version, function* () {
                yield* store.finish.prepare("p.n:x_1", 1, result)();
                yield* body();
              }),
            ),
          ).toBe("EXECUTION_CHANGED_INSIDE");
          expect(await kindsOf(fixture, "p")).toBe(before);
        }),
      );

    test(
      "[R12] is refused when its body pauses the execution and resumes it",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const version = await lockedParent(fixture);
        expect(
          await refusal(fixture, () =>
            inTransaction(fixture, version, function* () {
              yield* store.pause.prepare("p")();
              yield* store.unpause.prepare("p")();
            }),
          ),
        ).toBe("EXECUTION_CHANGED_INSIDE");
      }),
    );
  });
}
